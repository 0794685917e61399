// The cost of a list in seats of kube-apiserver's priority and fairness (apiserver/pkg/util/flowcontrol/request/list_work_estimator.go).

/** Response bytes per seat. */
export const BYTES_PER_SEAT = 100_000
/** Maximum cost of a list. */
const MAX_SEATS = 100

/**
 * Not capped at a megabyte for responses from the watch cache, although kube-apiserver does so for itself since it streams them: their load
 * on the network, the gateway and older servers still grows with size.
 * @param bytes 0 = unknown
 */
export function seatsOf(bytes: number): number {
  if (bytes <= BYTES_PER_SEAT) return 1
  return Math.min(Math.ceil(bytes / BYTES_PER_SEAT), MAX_SEATS)
}
