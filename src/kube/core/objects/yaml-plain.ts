// Accepts only YAML that every library parses alike. kube-apiserver reads YAML 1.1 with Go's library, the gateway uses another one: where
// they differ, the gateway would check something other than what kube-apiserver does.

import { isUtf8 } from 'node:buffer'

/**
 * Directives, anchors, aliases, tags and merges (`<<`, whose precedence differs between versions of Go's library). Also characters that
 * only Go's library treats as a line break, which ends a comment (U+000D alone, U+0085, U+2028, U+2029), or skips (U+FEFF).
 */
const AMBIGUOUS = /<<|[&*!\u0085\u2028\u2029\ufeff]|\r(?!\n)|^%/m

/** Clients send nothing else. Linear in the body, which is not JSON. */
export function isPlainYaml(body: Buffer): boolean {
  // Go's library also reads UTF-16, and the same bytes may have another meaning in it.
  return isUtf8(body) && !AMBIGUOUS.test(body.toString('utf8'))
}
