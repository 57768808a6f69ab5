// Answers device selectors by the real package of a release: tests/upstream/selectors.py copies this file into it.
package cel

import (
	"bufio"
	"context"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
)

type askedDevice struct {
	Driver                   string                                                    `json:"driver"`
	AllowMultipleAllocations *bool                                                     `json:"allowMultipleAllocations,omitempty"`
	Attributes               map[resourceapi.QualifiedName]resourceapi.DeviceAttribute `json:"attributes,omitempty"`
	Capacity                 map[resourceapi.QualifiedName]resourceapi.DeviceCapacity  `json:"capacity,omitempty"`
}

type query struct {
	Name       string        `json:"name"`
	Expression string        `json:"expression"`
	Devices    []askedDevice `json:"devices"`
	Results    []string      `json:"results"`
}

func (q *query) answer() {
	compiled := GetCompiler(Features{EnableConsumableCapacity: os.Getenv("KINDRED_CONSUMABLE") != ""}).
		CompileCELExpression(q.Expression, Options{DisableCostEstimation: true})
	q.Results = []string{}
	for _, each := range q.Devices {
		if compiled.Error != nil {
			q.Results = append(q.Results, "compile")
			continue
		}
		match, _, err := compiled.DeviceMatches(context.Background(), Device{
			Driver: each.Driver, AllowMultipleAllocations: each.AllowMultipleAllocations, Attributes: each.Attributes, Capacity: each.Capacity,
		})
		switch {
		case err != nil && strings.Contains(err.Error(), "cost limit"):
			q.Results = append(q.Results, "cost")
		case err != nil:
			q.Results = append(q.Results, "runtime")
		case match:
			q.Results = append(q.Results, "true")
		default:
			q.Results = append(q.Results, "false")
		}
	}
}

// TestAnswer answers the rows of upstream's own table, and the queries of the file KINDRED_QUERIES, one a line.
func TestAnswer(t *testing.T) {
	answers, err := os.Create(os.Getenv("KINDRED_ANSWERS"))
	if err != nil {
		t.Fatal(err)
	}
	encoder := json.NewEncoder(answers)
	encoder.SetEscapeHTML(false)
	write := func(q query) {
		q.answer()
		if err := encoder.Encode(q); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(testcases)) {
		row := testcases[name]
		write(query{Name: name, Expression: row.expression, Devices: []askedDevice{
			{row.driver, row.allowMultipleAllocations, row.attributes, row.capacity},
		}})
	}
	file, err := os.Open(os.Getenv("KINDRED_QUERIES"))
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(file)
	lines.Buffer(make([]byte, 1<<20), 1<<26)
	for lines.Scan() {
		var q query
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			t.Fatal(err)
		}
		write(q)
	}
	if err := answers.Close(); err != nil {
		t.Fatal(err)
	}
}
