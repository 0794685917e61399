// The modes of the degrade switch: the one table of them. The type, the schema and its text, what a refusal says, and the list in
// `portcullis degrade` come from it; what each mode lets through is a row in src/gateway/core/policy/degrade.ts.

/**
 * A ladder: each mode lets through all that the stricter one behind it does, and more. `effect`: what it does, as refusals and
 * `kubectl explain` say it.
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

/** Of an object that names none. */
export const DEFAULT_DEGRADE_MODE: DegradeMode = 'Off'

/** The stricter, the later. */
export const DEGRADE_MODES: readonly DegradeMode[] = LADDER.map(({ mode }) => mode)

const EFFECTS: ReadonlyMap<DegradeMode, string> = new Map(LADDER.map(({ mode, effect }) => [mode, effect]))

/** What the mode does, as a clause: `only node heartbeats are let through`. */
export function degradeEffect(mode: DegradeMode): string {
  return EFFECTS.get(mode) ?? ''
}

/**
 * spec.degrade.mode as it is written. undefined = this version does not know it: nobody may loosen it, or take a step from it.
 * @param value of any type; none, and '', are the default
 */
export function writtenMode(value: unknown): DegradeMode | undefined {
  const written = value === undefined || value === null || value === '' ? DEFAULT_DEGRADE_MODE : value
  return DEGRADE_MODES.find((mode) => mode === written)
}
