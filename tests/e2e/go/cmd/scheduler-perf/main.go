// Command scheduler-perf is upstream's scheduler_perf (test/integration/scheduler_perf), unchanged but for a place where
// Kindred can be started beside it. API server, scheduler and benchmark are this one process; etcd has to be on PATH.
//
// Its flags are those of a Go test binary and of scheduler_perf. Further settings come from the environment:
//
//	SCHEDULER_PERF_CONFIG      the test cases, a performance-config.yaml
//	SCHEDULER_PERF_KUBECONFIG  where to write a kubeconfig of the API server; empty: nowhere. The file is there while a
//	                           workload runs. When it is gone, who follows the API server has to end: the benchmark
//	                           waits up to ten minutes for the connections of the scheduler's extenders to be closed.
//	SCHEDULER_PERF_WAIT_FOR    a URL that has to answer 200 before a workload begins; empty: none
package main

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	_ "k8s.io/component-base/logs/json/register"
	perf "k8s.io/kubernetes/test/integration/scheduler_perf"
)

const (
	patience = 3 * time.Minute
	every    = 100 * time.Millisecond
)

func main() {
	testing.Init()
	if err := perf.InitTests(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// What `go test` would generate. A program rather than a test, so that it is built and kept as the others are.
	testing.Main(regexp.MatchString, nil, []testing.InternalBenchmark{{Name: "BenchmarkPerfScheduling", F: benchmark}}, nil)
}

func benchmark(b *testing.B) {
	perf.RunBenchmarkPerfScheduling(b, os.Getenv("SCHEDULER_PERF_CONFIG"), "kindred", nil, perf.WithPrepareFn(prepare))
}

// testContext is what is used of ktesting.TContext, which is of one package up to v1.36 and of another from v1.37 on.
type testContext interface {
	Cleanup(func())
	Errorf(format string, args ...any)
	RESTConfig() *rest.Config
}

// prepare lets another program follow the API server of a workload, and waits until that program is ready. The
// scheduler runs already, and has nothing to do yet.
func prepare[T testContext](tCtx T) error {
	if path := os.Getenv("SCHEDULER_PERF_KUBECONFIG"); path != "" {
		if err := writeKubeconfig(tCtx.RESTConfig(), path); err != nil {
			return err
		}
		tCtx.Cleanup(func() {
			if err := os.Remove(path); err != nil {
				tCtx.Errorf("remove the kubeconfig: %v", err)
			}
		})
	}
	if url := os.Getenv("SCHEDULER_PERF_WAIT_FOR"); url != "" {
		return waitFor(url)
	}
	return nil
}

// writeKubeconfig renames the file when it is complete: who waits for it may read it as soon as it is there.
func writeKubeconfig(config *rest.Config, path string) error {
	const name = "scheduler-perf"
	written := clientcmdapi.NewConfig()
	written.Clusters[name] = &clientcmdapi.Cluster{
		Server:                   config.Host,
		TLSServerName:            config.ServerName,
		CertificateAuthority:     config.CAFile,
		CertificateAuthorityData: config.CAData,
		InsecureSkipTLSVerify:    config.Insecure,
	}
	written.AuthInfos[name] = &clientcmdapi.AuthInfo{
		Token:                 config.BearerToken,
		ClientCertificate:     config.CertFile,
		ClientCertificateData: config.CertData,
		ClientKey:             config.KeyFile,
		ClientKeyData:         config.KeyData,
	}
	written.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	written.CurrentContext = name
	incomplete := path + ".incomplete"
	if err := clientcmd.WriteToFile(*written, incomplete); err != nil {
		return err
	}
	return os.Rename(incomplete, path)
}

func waitFor(url string) error {
	client := http.Client{Timeout: time.Second}
	last := ""
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(every) {
		response, err := client.Get(url)
		if err != nil {
			last = err.Error()
			continue
		}
		response.Body.Close()
		if response.StatusCode == http.StatusOK {
			client.CloseIdleConnections() // its goroutines would be a leak to GoleakCheck
			return nil
		}
		last = response.Status
	}
	return fmt.Errorf("%s: not ready within %s: %s", url, patience, last)
}
