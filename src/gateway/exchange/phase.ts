// Where a request stands, and where it can go from there. docs/architecture.md draws it, and a test compares them.

export type Phase =
  /** Nothing has been sent upstream; the body is held, at most a flow-control window of it. */
  | 'deciding'
  /** Nothing has been sent upstream; the body is read to its end, because the decision depends on it. */
  | 'reading'
  /** The client has got nothing of an answer; a body that is not too long is kept. */
  | 'sending'
  /** The response head is out. */
  | 'answering'
  /** An upgrade, before and after the client's socket was joined to upstream's. */
  | 'upgrading'
  | 'upgraded'
  | 'over'

export const TRANSITIONS: Readonly<Record<Phase, readonly Phase[]>> = {
  deciding: ['reading', 'sending', 'upgrading', 'over'],
  reading: ['sending', 'over'],
  sending: ['answering', 'reading', 'over'],
  answering: ['over'],
  upgrading: ['upgraded', 'over'],
  upgraded: ['over'],
  over: [],
}

/** `to`. @throws when there is no such step: a bug */
export function nextPhase(from: Phase, to: Phase): Phase {
  if (!TRANSITIONS[from].includes(to)) throw new Error(`a request that is ${from} cannot become ${to}`)
  return to
}
