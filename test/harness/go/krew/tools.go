//go:build tools

// Package tools pins Krew, which installs the plugins of this repository, and the check that Krew's index makes of manifests.
package tools

import (
	_ "sigs.k8s.io/krew/cmd/krew"
	_ "sigs.k8s.io/krew/cmd/validate-krew-manifest"
)
