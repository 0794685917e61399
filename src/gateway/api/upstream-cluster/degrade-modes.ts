// The single table of degrade modes: type, schema and its text, refusal messages, and the list in `portcullis degrade` derive from it; what each mode
// lets through is a row in src/gateway/core/policy/degrade.ts.

/**
 * From loose to strict: each mode admits everything that the stricter ones after it do, and more. `effect`: what the mode does, in the words of
 * refusals and `kubectl explain`.
 */
const LADDER = [
  { mode: 'Off', effect: 'nothing is refused' },
  {
    mode: 'Limited',
    effect: 'deletions, evictions, NoExecute taints and lowered replicas are limited by rate',
  },
  {
    mode: 'NoDisruption',
    effect: 'deletions, evictions, NoExecute taints and lowered replicas are refused',
  },
  { mode: 'ReadOnly', effect: 'writes other than node heartbeats are refused' },
  { mode: 'HeartbeatsOnly', effect: 'only node heartbeats are let through' },
  { mode: 'Freeze', effect: 'everything but health checks is refused' },
] as const

export type DegradeMode = (typeof LADDER)[number]['mode']

/** Mode of an object that does not set one. */
export const DEFAULT_DEGRADE_MODE: DegradeMode = 'Off'

/** From loosest to strictest. */
export const DEGRADE_MODES: readonly DegradeMode[] = LADDER.map(({ mode }) => mode)

const EFFECTS: ReadonlyMap<DegradeMode, string> = new Map(LADDER.map(({ mode, effect }) => [mode, effect]))

/** What the mode does, as a clause: `only node heartbeats are let through`. */
export function degradeEffect(mode: DegradeMode): string {
  return EFFECTS.get(mode) ?? ''
}

/**
 * spec.degrade.mode as written. undefined = a mode unknown to this version, which must not be loosened or stepped down automatically.
 * @param value of any type; absent and '' mean the default
 */
export function writtenMode(value: unknown): DegradeMode | undefined {
  const written = value === undefined || value === null || value === '' ? DEFAULT_DEGRADE_MODE : value
  return DEGRADE_MODES.find((mode) => mode === written)
}
