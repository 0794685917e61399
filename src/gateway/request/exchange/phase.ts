// Where a request stands, and where it can go from there. docs/architecture.md draws it, and a test compares them.

export const PHASES = [
  // Nothing has been sent upstream; the body is held, at most a flow-control window of it.
  'deciding',
  // Nothing has been sent upstream; the body is read to its end, because the decision depends on it.
  'reading',
  // The client has got nothing of an answer; a body that is not too long is kept.
  'sending',
  // The response head is out.
  'answering',
  // An upgrade, before and after the client's socket was joined to upstream's.
  'upgrading',
  'upgraded',
  'over',
] as const

export type Phase = (typeof PHASES)[number]

/** A table in code: it is asked three times for every request, and comparing constants costs least. */
export function canBecome(from: Phase, to: Phase): boolean {
  switch (from) {
    case 'deciding':
      return to === 'sending' || to === 'over' || to === 'reading' || to === 'upgrading'
    case 'reading':
      return to === 'sending' || to === 'over'
    case 'sending':
      return to === 'answering' || to === 'over' || to === 'reading'
    case 'answering':
      return to === 'over'
    case 'upgrading':
      return to === 'upgraded' || to === 'over'
    case 'upgraded':
      return to === 'over'
    case 'over':
      return false
  }
}

/** `to`. @throws when there is no such step: a bug */
export function nextPhase(from: Phase, to: Phase): Phase {
  if (!canBecome(from, to)) throw new Error(`a request that is ${from} cannot become ${to}`)
  return to
}
