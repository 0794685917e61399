//go:build tools

// Package tools pins the Helm that lints, renders and installs the chart in tests.
package tools

import _ "helm.sh/helm/v4/cmd/helm"
