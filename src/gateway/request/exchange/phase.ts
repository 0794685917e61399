// Phases of a request and their transitions. docs/architecture.md draws them, and a test compares the two.

export const PHASES = [
  // Nothing has been sent upstream; at most one flow-control window of the body is held.
  'deciding',
  // Nothing has been sent upstream; the whole body is read, because the decision depends on it.
  'reading',
  // No part of a response has reached the client; a body that is not too long is kept.
  'sending',
  // The response head is out.
  'answering',
  // An upgrade, before and after the two sockets are joined.
  'upgrading',
  'upgraded',
  'over',
] as const

export type Phase = (typeof PHASES)[number]

/** Code instead of a table: called three times per request, and comparing constants is cheapest. */
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

/** Returns `to`. @throws if there is no such transition: a bug */
export function nextPhase(from: Phase, to: Phase): Phase {
  if (!canBecome(from, to)) throw new Error(`a request that is ${from} cannot become ${to}`)
  return to
}
