// Warning header fields of a cluster's answers, as far as answers of the cache have them.

/** As much as kube-apiserver sends with one answer, before it shortens them (apiserver/pkg/endpoints/filters/warning.go). */
export const MAX_WARNING_BYTES: number = 4 * 1024
/** What any protocol sends as it is. Those of deprecated versions are nothing else. */
const PRINTABLE = /^[\x20-\x7e]+$/

/** @param values as received @returns those that are kept, in order, each once */
export function keptWarnings(values: readonly string[]): readonly string[] {
  const kept: string[] = []
  let bytes = 0
  for (const value of new Set(values)) {
    bytes += value.length
    if (bytes > MAX_WARNING_BYTES) break
    if (PRINTABLE.test(value)) kept.push(value)
  }
  return kept
}
