// spec.degrade.auto: when the gateway sets spec.degrade.mode by itself; status.degrade.auto: what it observes and does.

import {
  checked,
  complete,
  DURATION_PATTERN,
  defaultsTo,
  duration,
  fieldOf,
  flag,
  integer,
  list,
  object,
  text,
  time,
  typedText,
  type ValueOf,
} from '../../../kit/api/json/json-schema.ts'
import type { Loose } from '../../../kit/api/json/object-shape.ts'
import { type FieldErrors, shown } from '../../../kit/api/validation/field-errors.ts'
import { checkLabelSelector, isEmptySelector } from '../../../kit/api/validation/label-selector-checks.ts'
import { labelSelector } from '../../../kit/api/validation/label-selector-schema.ts'
import { AUTO_DEGRADE_RULES, AUTO_DEGRADE_UPSTREAM_RULES, autoDegradeNodesRules } from './cel/cel-rules.ts'

const MAX_UNREADY_PERCENT = 45
const EXIT_PERCENT = 30

const nodes = object(
  'If present, even if empty, NoDisruption is set when many nodes are unready. Default: nodes are not watched.',
  {
    selector: labelSelector('Only nodes with these labels count. Default: all.'),
    okUnready: defaultsTo(3, integer('This many unready nodes or fewer are never an incident.', 0, 100_000)),
    maxUnreadyPercent: defaultsTo(
      MAX_UNREADY_PERCENT,
      integer(
        'The incident begins when more than this percentage of the nodes, and more than okUnready, are unready.',
        0,
        100,
      ),
    ),
    enterAfter: defaultsTo('30s', duration('How long that must last without a break.')),
    exitPercent: defaultsTo(
      EXIT_PERCENT,
      integer(
        'The incident ends when at most this percentage, or okUnready, are unready. At most maxUnreadyPercent.',
        0,
        100,
      ),
    ),
    exitAfter: defaultsTo('2m', duration('How long that must last without a break.')),
    maxStartupTime: defaultsTo(
      '15m',
      duration('A node that is not ready counts as unready only after this time since its creation.'),
    ),
    staleAfter: defaultsTo(
      '60s',
      duration('If the state of the nodes is older than this, nothing is decided. At least 5s.'),
    ),
  },
)

const upstream = object(
  'If present, even if empty, Limited is set when upstream is overloaded. Default: answers are not observed.',
  {
    maxErrorPercent: defaultsTo(
      25,
      integer('The overload begins when more than this percentage of the requests get 5xx or no answer.', 1, 100),
    ),
    maxLatency: defaultsTo(
      '0s',
      duration(
        'It also begins when the median time to the response head is longer than this; 0s: latency does not count.',
      ),
    ),
    minRequests: defaultsTo(50, integer('With fewer requests in the window, nothing is decided.', 1, 1_000_000)),
    window: defaultsTo('30s', duration('Length of the window of requests that is evaluated: 5s to 10m.')),
    enterAfter: defaultsTo('30s', duration('How long the overload must last without a break.')),
    exitAfter: defaultsTo(
      '2m',
      duration('How long both values must be at most half of their limits, without a break, until it ends.'),
    ),
  },
)

const recovery = object(
  'Written to spec.degrade.recovery when the incident is over, which begins the recovery. Default: its defaults.',
  {
    hold: duration('How long the checks of a mode must hold before the next mode is set.'),
    ramp: duration('How long the ramp of Limited takes.'),
  },
)

export const AUTO_DEGRADE_SCHEMA = checked(
  object('When the gateway sets a stricter mode by itself. At least one of nodes and upstream. Default: never.', {
    nodes: checked(nodes, autoDegradeNodesRules(EXIT_PERCENT, MAX_UNREADY_PERCENT)),
    upstream: checked(upstream, AUTO_DEGRADE_UPSTREAM_RULES),
    recovery,
    shadow: defaultsTo(false, flag('Report the mode that would be set, but do not set it.')),
  }),
  AUTO_DEGRADE_RULES,
)

export const AUTO_DEGRADE_STATUS_SCHEMA = object(
  'Observations and actions of spec.degrade.auto.',
  {
    phase: typedText<'Normal' | 'Suspect' | 'Degraded' | 'Unknown'>(
      'Normal, Suspect or Degraded; or Unknown: there is not enough information for a decision.',
    ),
    reason: text('Reason, as a sentence for people.'),
    since: time('When the phase began.'),
    causes: list('Causes that have begun: Nodes, Upstream.', typedText<'Nodes' | 'Upstream'>('A cause.')),
    action: typedText<'Entered' | 'Shadow' | 'Stricter' | 'Overruled'>(
      'Action taken: Entered, Shadow, Stricter or Overruled.',
    ),
    mode: text('The mode that was set, or in shadow mode would have been set.'),
  },
  ['phase'],
  ['reason', 'since'],
)

/** At least one of `nodes` and `upstream`. Durations in Go's format: `30s`. */
export type AutoDegrade = ValueOf<typeof AUTO_DEGRADE_SCHEMA>
/** The same as spec.degrade.recovery. */
export type AutoDegradeRecovery = NonNullable<AutoDegrade['recovery']>
export type AutoDegradeNodes = NonNullable<AutoDegrade['nodes']>
export type AutoDegradeUpstream = NonNullable<AutoDegrade['upstream']>
/** status.degrade.auto. */
export type AutoDegradeStatus = ValueOf<typeof AUTO_DEGRADE_STATUS_SCHEMA>
/**
 * `Normal`: no sign of an incident. `Suspect`: there is one, but not for long enough yet. `Degraded`: an incident is in progress; whether a mode was
 * entered is in `mode`. `Unknown`: too little data for a decision.
 */
export type AutoDegradePhase = AutoDegradeStatus['phase']
export type AutoDegradeCause = NonNullable<AutoDegradeStatus['causes']>[number]
/**
 * `Entered`: the mode was set. `Shadow`: it would have been set. `Stricter`: a mode at least as strict was already in force. `Overruled`: the mode
 * was loosened by hand or another writer since; it is not entered again until the cluster has recovered once.
 */
export type AutoDegradeAction = NonNullable<AutoDegradeStatus['action']>

// Checks of spec.degrade.auto that its schema cannot express.

const NODES = fieldOf(AUTO_DEGRADE_SCHEMA, 'nodes')
const DURATION = new RegExp(DURATION_PATTERN)
const LEAST_MS = 5_000
const LONGEST_WINDOW_MS = 600_000

export function checkAutoDegrade(
  { nodes, upstream, recovery = {} }: Loose<AutoDegrade>,
  path: string,
  out: FieldErrors,
): void {
  if (nodes === undefined && upstream === undefined) {
    out.required(path, 'has nothing that could begin it', 'add nodes: {} or upstream: {}, or remove it')
  }
  if (nodes !== undefined) checkNodes(nodes, `${path}.nodes`, out)
  const { hold, ramp } = recovery
  checkDurations({ hold, ramp }, `${path}.recovery`, out)
  if (upstream === undefined) return
  const { enterAfter, exitAfter, maxLatency, window } = upstream
  checkDurations({ enterAfter, exitAfter, maxLatency, window }, `${path}.upstream`, out)
  const windowMs = durationMs(window)
  if (windowMs !== undefined && (windowMs < LEAST_MS || windowMs > LONGEST_WINDOW_MS)) {
    out.invalid(`${path}.upstream.window`, `${shown(window ?? '')} is too short or too long`, 'write 5s to 10m')
  }
}

function checkNodes(nodes: Loose<AutoDegradeNodes>, path: string, out: FieldErrors): void {
  const {
    maxUnreadyPercent: max,
    exitPercent: exit,
    selector,
    enterAfter,
    exitAfter,
    maxStartupTime,
    staleAfter,
  } = nodes
  checkDurations({ enterAfter, exitAfter, maxStartupTime, staleAfter }, path, out)
  const staleMs = durationMs(staleAfter)
  if (staleMs !== undefined && staleMs < LEAST_MS) {
    out.invalid(`${path}.staleAfter`, `${shown(staleAfter ?? '')} is too short`, 'write at least 5s')
  }
  const given = {
    ...(max !== undefined && { maxUnreadyPercent: max }),
    ...(exit !== undefined && { exitPercent: exit }),
  }
  const { maxUnreadyPercent, exitPercent } = complete(NODES, given)
  // Otherwise the same nodes would both begin and end it.
  if (exitPercent > maxUnreadyPercent) {
    const fix = `write at most ${maxUnreadyPercent}`
    out.invalid(`${path}.exitPercent`, `is ${exitPercent}, above maxUnreadyPercent (${maxUnreadyPercent})`, fix)
  }
  if (selector === undefined) return
  checkLabelSelector(selector, `${path}.selector`, out)
  if (isEmptySelector(selector)) {
    out.warning(`${path}.selector`, 'is empty: it selects all nodes', 'remove it, or name labels')
  }
}

function checkDurations(given: Readonly<Record<string, string | undefined>>, path: string, out: FieldErrors): void {
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || DURATION.test(value)) continue
    out.invalid(`${path}.${name}`, `${shown(value)} is not a duration`, 'write 90s, 10m or 1h30m')
  }
}

const UNIT_MS: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1_000, ms: 1 }

/** undefined = absent or not a duration. */
function durationMs(text: string | undefined): number | undefined {
  if (text === undefined || !DURATION.test(text)) return undefined
  let sum = 0
  for (const [, count, unit = ''] of text.matchAll(/(\d+)(ms|h|m|s)/g)) sum += Number(count) * (UNIT_MS[unit] ?? 0)
  return sum
}
