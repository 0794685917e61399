// What is said to the process that attacks, and what it says: JSON lines.

import type { Target } from './attack.ts'

/** A target without what is counted. */
export type TargetMessage = Omit<Target, 'answers'>

export type Command = { readonly attack: string; readonly target: TargetMessage } | { readonly stop: true }

export interface Outcome {
  /** By answer. */
  readonly counts: Readonly<Record<string, number>>
  readonly connections: number
  readonly accepted: number
  readonly sentBytes: number
  readonly receivedBytes: number
  /** What broke in the attack itself; empty if nothing. */
  readonly error: string
}

/**
 * 'ready': it has loaded the corpus; 'begun': it was let in, or was refused; 'defined': it got one of the answers that must come; an outcome:
 * it was stopped, or has failed.
 */
export type Report =
  | { readonly ready: true }
  | { readonly begun: true }
  | { readonly defined: true }
  | { readonly outcome: Outcome }
