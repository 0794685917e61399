// What an answer keeps while its client takes the objects, and for how long: a list of them, which is the caller's, and objects that are not those of the
// collection any more. A client that takes a byte now and then would keep them all for ever.

/** For any answer: kube-apiserver ends a list after as long (--request-timeout). */
export const DELIVERY_MS = 60_000
/** For each MiB of it, one second more. */
const BYTES_PER_MS = 1024 * 1.024
/** An object in the list of those that are sent. */
const REFERENCE_BYTES = 8

/** How long a client may take for an answer of so many bytes. */
export function deliveryMs(bytes: number): number {
  return DELIVERY_MS + Math.ceil(bytes / BYTES_PER_MS)
}

/** Bytes that are charged for objects until they are sent. */
export function memoryFor(objects: number): number {
  return objects * REFERENCE_BYTES
}
