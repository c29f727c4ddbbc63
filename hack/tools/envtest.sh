#!/bin/sh
# Copies etcd, kube-apiserver and kubectl from a folder of setup-envtest, KUBEBUILDER_ASSETS, if their versions fit.
# usage: envtest.sh ASSETS BIN KUBERNETES_VERSION ETCD_VERSION
set -eu
assets=$1 bin=$2 kubernetes=$3 etcd=$4

refuse() {
	echo "KUBEBUILDER_ASSETS: $1" >&2
	echo "Unset KUBEBUILDER_ASSETS to build the pinned versions, or run: setup-envtest use ${kubernetes#v}" >&2
	exit 1
}

# minor prints the first two numbers of a version: v1.37.2 is 1.37.
minor() { echo "${1#v}" | cut -d. -f1,2; }

# version NAME ARGUMENTS prints the version of a program.
version() {
	program=$assets/$1
	[ -x "$program" ] || refuse "$program does not exist or cannot be executed"
	shift
	"$program" "$@" 2>/dev/null | sed -nE 's/^(Kubernetes|Client Version:|etcd Version:) (v?[0-9][^ ]*).*/\2/p' | head -n 1
}

found=$(version kube-apiserver --version)
[ "$(minor "$found")" = "$(minor "$kubernetes")" ] || refuse "$assets/kube-apiserver has the version ${found:-unknown}, want $(minor "$kubernetes")"
found=$(version kubectl version --client)
[ "$(minor "$found")" = "$(minor "$kubernetes")" ] || refuse "$assets/kubectl has the version ${found:-unknown}, want $(minor "$kubernetes")"
# Any etcd from 3.5 to the pinned minor: kube-apiserver supports these.
found=$(version etcd --version)
case $(minor "$found") in
3.[5-9]) [ "$(minor "$found" | cut -d. -f2)" -le "$(minor "$etcd" | cut -d. -f2)" ] ;;
*) false ;;
esac || refuse "$assets/etcd has the version ${found:-unknown}, want 3.5 to $(minor "$etcd")"

mkdir -p "$bin"
for program in etcd kube-apiserver kubectl; do
	# A new file, so that a running program is not overwritten.
	cmp -s "$assets/$program" "$bin/$program" || { cp "$assets/$program" "$bin/$program.next" && mv "$bin/$program.next" "$bin/$program"; }
done
