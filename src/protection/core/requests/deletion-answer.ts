// Interprets upstream's response to a deletion.

/**
 * Whether the response means that the pod was not deleted. 404, and 409 for a uid: another client deleted it, and it stays counted among the
 * deletions until the aggregator sees it. 408: a server that timed out may still have deleted it.
 */
export function meansNotDeleted(code: number): boolean {
  return code >= 400 && code < 500 && code !== 404 && code !== 408 && code !== 409
}
