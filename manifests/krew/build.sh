#!/bin/sh
# Builds the archive of the krew plugin, and the manifest for it:
#   build.sh PYTHON FOLDER [ADDRESS]
# PYTHON has hatchling. ADDRESS is where the archive will be downloaded from. The same files give the same archive.
set -eu

python=$1 folder=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
archive=$folder/kubectl-kindred.tar.gz
address=${3:-https://localhost/kubectl-kindred.tar.gz}
parts=$(mktemp -d)
trap 'rm -rf "$parts"' EXIT

mkdir -p "$folder"
(cd "$root" && SOURCE_DATE_EPOCH=315532800 "$python" -m hatchling build -t wheel -d "$parts" >/dev/null)
cp "$root/manifests/krew/kubectl-kindred" "$root/requirements.lock" "$root/LICENSE" "$parts"
tar --sort=name --mtime=@315532800 --owner=0 --group=0 --numeric-owner --mode=a+rX,u+w,go-w \
    -C "$parts" -cf - . | gzip -n >"$archive"
checksum=$(sha256sum "$archive" | cut -d' ' -f1)
sed -e "s|ARCHIVE|$address|" -e "s|CHECKSUM|$checksum|" "$root/manifests/krew/kindred.yaml" |
    sed -e '1,2d' >"$folder/kindred.yaml"
echo "$archive and $folder/kindred.yaml; to try them:"
echo "  kubectl krew install --manifest=$folder/kindred.yaml --archive=$archive"
