// What a list costs, in the seats of kube-apiserver's priority and fairness (apiserver/pkg/util/flowcontrol/request/list_work_estimator.go).

/** Bytes of an answer that cost one seat. */
export const BYTES_PER_SEAT = 100_000
/** No list costs more. */
const MAX_SEATS = 100

/**
 * Not capped at a megabyte for what kube-apiserver answers from its watch cache, as it does for itself since it streams such answers: what
 * an answer takes of the network, of the gateway and of older servers grows with it all the same.
 * @param bytes 0 = not known
 */
export function seatsOf(bytes: number): number {
  if (bytes <= BYTES_PER_SEAT) return 1
  return Math.min(Math.ceil(bytes / BYTES_PER_SEAT), MAX_SEATS)
}
