// Command intree-affinity answers for pods as a scheduler would whose only plugin is the in-tree InterPodAffinity, and
// says how long that took: the other side of `python -m tests.bench.intree`.
//
// On stdin come JSON values. First the cluster, an object at a time: {"namespace": ...}, {"node": ...} or {"pod": ...};
// then {}, upon which stdout gets a line that tells what is there. Then incoming pods, each answered at once by a line
// with the nanoseconds and the scores of the nodes that fit. It ends with stdin.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/version"
)

// object is one object of the cluster; the end of the cluster if there is none in it.
type object struct {
	Namespace *v1.Namespace `json:"namespace"`
	Node      *v1.Node      `json:"node"`
	Pod       *v1.Pod       `json:"pod"`
}

// description tells what the answers are of.
type description struct {
	Go          string `json:"go"`
	Kubernetes  string `json:"kubernetes"`
	MaxProcs    int    `json:"gomaxprocs"`
	Parallelism int    `json:"parallelism"`
	Nodes       int    `json:"nodes"`
	Pods        int    `json:"pods"`
}

// answer has the normalized score of every node that fits.
type answer struct {
	Nanoseconds int64            `json:"nanoseconds"`
	Scores      map[string]int64 `json:"scores"`
}

func main() {
	if err := run(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "intree-affinity:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, input io.Reader, output io.Writer) error {
	decoder := json.NewDecoder(bufio.NewReaderSize(input, 1<<20))
	decoder.DisallowUnknownFields() // what is not read here is not the same cluster
	encoder := json.NewEncoder(output)
	scheduler, err := newScheduler(ctx)
	if err != nil {
		return err
	}
	if err := load(decoder, scheduler); err != nil {
		return fmt.Errorf("the cluster: %w", err)
	}
	nodes, pods, err := scheduler.takeSnapshot(ctx)
	if err != nil {
		return err
	}
	if err := encoder.Encode(description{
		Go:          runtime.Version(),
		Kubernetes:  version.Get().GitVersion,
		MaxProcs:    runtime.GOMAXPROCS(0),
		Parallelism: scheduler.parallelism,
		Nodes:       nodes,
		Pods:        pods,
	}); err != nil {
		return err
	}
	for {
		var pod v1.Pod
		if err := decoder.Decode(&pod); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("an incoming pod: %w", err)
		}
		totals, spent, err := scheduler.schedule(ctx, &pod)
		if err != nil {
			return fmt.Errorf("pod %s: %w", pod.Name, err)
		}
		scores := make(map[string]int64, len(totals))
		for _, node := range totals {
			scores[node.Name] = node.TotalScore
		}
		if err := encoder.Encode(answer{Nanoseconds: spent.Nanoseconds(), Scores: scores}); err != nil {
			return err
		}
	}
}

// load takes in the cluster, up to its end.
func load(decoder *json.Decoder, scheduler *scheduler) error {
	for {
		var next object
		if err := decoder.Decode(&next); err != nil {
			return err
		}
		var err error
		switch {
		case next.Namespace != nil:
			err = scheduler.addNamespace(next.Namespace)
		case next.Node != nil:
			scheduler.addNode(next.Node)
		case next.Pod != nil:
			err = scheduler.addPod(next.Pod)
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
}
