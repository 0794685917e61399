// What upstream's answer to the deletion of a pod says of the pod.

/**
 * Whether the answer means that the pod lives on. 404, and 409 to a uid: it is gone, by whomever, and stays counted among the
 * deletions until the aggregator sees it. 408: a server that gave up on waiting may have done its work.
 */
export function isNoDeletion(code: number): boolean {
  return code >= 400 && code < 500 && code !== 404 && code !== 408 && code !== 409
}
