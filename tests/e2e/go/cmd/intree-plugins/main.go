// Command intree-plugins answers golden cases with the real plugins of the release it is built from: the other side of
// `make parity`.
//
// On stdin come cases, a JSON object a line. For each a line goes to stdout: {"expected": ...} in the golden format,
// {"panic": ...} if a plugin panicked, or {"rejected": ...} if the objects cannot be decoded or scored. Which kind of case
// it is, its members tell: `resourceslices`, `queue`, `pdbs`, `nominated`, `storageclasses`, none of them. With -release
// it prints the release and ends. With -timed it is the other side of a benchmark, see timed.go.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"k8s.io/component-base/version"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

func main() {
	release := flag.Bool("release", false, "print the release of Kubernetes")
	timed := flag.Bool("timed", false, "time DynamicResources: a case comes first, and then pods")
	flag.Parse()
	if *release {
		fmt.Println(version.Get().GitVersion)
		return
	}
	klog.SetLogger(klog.Logger{}) // a plugin logs what it refuses, and so does the error handler of the libraries
	metrics.Register()
	answering := reply
	if *timed {
		answering = (&timing{}).reply
	}
	if err := run(context.Background(), os.Stdin, os.Stdout, answering); err != nil {
		fmt.Fprintln(os.Stderr, "intree-plugins:", err)
		os.Exit(1)
	}
}

func run(
	ctx context.Context, input io.Reader, output io.Writer, answering func(context.Context, []byte) map[string]any,
) error {
	lines := bufio.NewReaderSize(input, 1<<20)
	encoder := json.NewEncoder(output)
	encoder.SetEscapeHTML(false)
	for {
		text, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(text) == 0 {
			return nil
		} else if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if err := encoder.Encode(answering(ctx, text)); err != nil {
			return err
		}
	}
}

// reply answers a line. What no API server would have let through is rejected, and so is what no plugin scores.
func reply(ctx context.Context, text []byte) map[string]any {
	var line testCase
	if err := json.Unmarshal(text, &line); err != nil {
		return map[string]any{"rejected": err.Error()}
	}
	result, err := answer(ctx, &line)
	if err != nil {
		return map[string]any{"rejected": err.Error()}
	}
	return result
}

// answer runs a case. A panic of a plugin is an answer, too: v1.37.1 panics for some capacities.
func answer(ctx context.Context, line *testCase) (result map[string]any, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			result = map[string]any{"panic": fmt.Sprintf("%v\n%s", cause, debug.Stack())}
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the goroutines of the framework
	reset, err := line.setGates()
	if err != nil {
		return nil, err
	}
	defer reset()
	cluster, err := newCluster(ctx, line)
	if err != nil {
		return nil, err
	}
	var expected any
	switch {
	case line.DeviceSlices != nil:
		expected, err = cluster.deviceAnswer(ctx)
	case line.Queue != nil:
		expected, err = cluster.sequenceAnswer(ctx)
	case line.Budgets != nil: // also with nominated pods
		expected, err = cluster.preemptionAnswer(ctx)
	case line.Nominated != nil:
		expected = cluster.nominatedAnswer(ctx)
	case line.StorageClasses != nil:
		expected, err = cluster.volumeAnswer(ctx)
	default:
		expected, err = cluster.pluginAnswer(ctx)
	}
	return map[string]any{"expected": expected}, err
}
