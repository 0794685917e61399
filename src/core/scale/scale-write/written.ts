// What is known of the replicas that a write asks for.

export type ReplicasWritten =
  /** If it succeeds, spec.replicas is this. */
  | { readonly kind: 'replicas'; readonly value: number }
  | { readonly kind: 'unchanged' }
  /** Depends on what is there, or is not parsed here. */
  | { readonly kind: 'ask-upstream' }
  /** No kube-apiserver can take it: why, for people. */
  | { readonly kind: 'unreadable'; readonly why: string }

export const ASK_UPSTREAM: ReplicasWritten = { kind: 'ask-upstream' }
export const UNCHANGED: ReplicasWritten = { kind: 'unchanged' }

const MAX_INT32 = 2 ** 31 - 1

/** @param value of the field; present, and not null */
export function replicasValue(value: unknown): ReplicasWritten {
  if (typeof value !== 'number') return { kind: 'unreadable', why: 'spec.replicas is not a number' }
  // Where patches are applied Go converts floats to int32, by ways of its own when they are too large.
  return Number.isInteger(value) && value >= 0 && value <= MAX_INT32 ? { kind: 'replicas', value } : ASK_UPSTREAM
}
