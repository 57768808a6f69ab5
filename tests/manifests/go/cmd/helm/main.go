// Command helm is Helm's own command line, of the release in go.mod.
package main

import (
	"errors"
	"log/slog"
	"os"

	"helm.sh/helm/v4/pkg/cmd"
)

func main() {
	root, err := cmd.NewRootCmd(os.Stdout, os.Args[1:], cmd.SetupLogging)
	if err != nil {
		slog.Error("command failed", slog.Any("error", err))
		os.Exit(1)
	}
	if err := root.Execute(); err != nil {
		var failed cmd.CommandError
		if errors.As(err, &failed) {
			os.Exit(failed.ExitCode)
		}
		os.Exit(1)
	}
}
