// Checks of spec.degrade.auto that its schema cannot express.

import { complete, DURATION_PATTERN, fieldOf } from '../../../kit/api/json/json-schema.ts'
import type { Loose } from '../../../kit/api/json/object-shape.ts'
import { type FieldErrors, shown } from '../../../kit/api/validation/field-errors.ts'
import { checkLabelSelector, isEmptySelector } from '../../../kit/api/validation/label-selector-checks.ts'
import type { AutoDegrade, AutoDegradeNodes } from './auto-degrade.ts'
import { AUTO_DEGRADE_SCHEMA } from './auto-degrade-schema.ts'

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
