// Command kustomize prints what a folder with a kustomization.yaml is built to, as `kubectl kustomize FOLDER` does.
package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

func main() {
	if err := build(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func build(arguments []string) error {
	if len(arguments) != 2 || arguments[0] != "build" {
		return fmt.Errorf("usage: kustomize build FOLDER")
	}
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), arguments[1])
	if err != nil {
		return err
	}
	text, err := made.AsYaml()
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(text)
	return err
}
