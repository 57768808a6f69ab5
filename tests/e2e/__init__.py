"""Kindred beside a real etcd, kube-apiserver and kube-scheduler, which are the judges here (`make e2e`)."""
