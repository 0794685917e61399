// `GET /version` (apimachinery/pkg/version/types.go).

import type { JsonObject } from '../api/kube/json-object.ts'

/** The Kubernetes release whose API conventions apply. */
const MAJOR = '1'
const MINOR = '36'

/**
 * kubectl reads gitVersion as a semantic version and warns when it is more than one minor version away from its own.
 * @param portcullis version of the program: `0.1.0`
 */
export function versionInfo(portcullis: string): JsonObject {
  return {
    major: MAJOR,
    minor: MINOR,
    gitVersion: `v${MAJOR}.${MINOR}.0+portcullis.${portcullis}`,
    gitCommit: '',
    gitTreeState: '',
    buildDate: '1970-01-01T00:00:00Z',
    goVersion: '',
    compiler: '',
    platform: '',
  }
}
