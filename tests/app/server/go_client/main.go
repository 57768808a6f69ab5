// A client as kube-scheduler has it: sends requests to a URL with pauses between them, and prints whether each used the
// connection of the one before. The first line is the idle timeout of Go's own transport.
package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"time"
)

func main() {
	url := os.Args[1]
	idle, err := time.ParseDuration(os.Args[2])
	check(err)
	pause, err := time.ParseDuration(os.Args[3])
	check(err)
	transport := http.DefaultTransport.(*http.Transport).Clone()
	fmt.Println(transport.IdleConnTimeout)
	transport.IdleConnTimeout = idle
	client := &http.Client{Transport: transport}
	for range 4 {
		trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { fmt.Println(info.Reused) }}
		request, err := http.NewRequest(http.MethodPost, url, bytes.NewReader([]byte("{}")))
		check(err)
		response, err := client.Do(request.WithContext(httptrace.WithClientTrace(request.Context(), trace)))
		check(err)
		_, err = io.Copy(io.Discard, response.Body)
		check(err)
		check(response.Body.Close())
		time.Sleep(pause)
	}
}

func check(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
