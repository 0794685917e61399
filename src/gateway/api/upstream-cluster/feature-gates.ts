// The value of KubeGateway's annotation proxy.kubegateway.io/feature-gates: `DenyAllRequests=true,Tracing=false`
// (k8s.io/component-base/featuregate/feature_gate.go).

import { shown } from '../../../kit/api/validation/field-errors.ts'
import { nearestName } from '../../../kit/api/validation/nearest-name.ts'
import { FEATURE_GATES } from './upstream-cluster.ts'

interface FeatureGates {
  /** Enabled gates. */
  readonly enabled: ReadonlySet<string>
  /** Errors in the text, one sentence each; invalid parts enable nothing. */
  readonly errors: readonly string[]
}

/** They all go into one message. */
const MOST_ERRORS = 10

// Go's strconv.ParseBool.
const TRUE = new Set(['1', 't', 'T', 'true', 'TRUE', 'True'])
const FALSE = new Set(['0', 'f', 'F', 'false', 'FALSE', 'False'])

/** If a gate is named twice, the last value wins. */
export function parseFeatureGates(text: string): FeatureGates {
  const enabled = new Set<string>()
  const errors: string[] = []
  let found = 0
  const error = (what: () => string): void => {
    if (found++ < MOST_ERRORS) errors.push(what())
  }
  for (const part of text.split(',')) {
    if (part.trim() === '') continue
    const equals = part.indexOf('=')
    const gate = (equals < 0 ? part : part.slice(0, equals)).trim()
    const value = equals < 0 ? '' : part.slice(equals + 1).trim()
    if (!isKnown(gate)) {
      error(() => unknownGate(gate))
    } else if (equals < 0) error(() => `feature gate ${gate} has no value`)
    else if (TRUE.has(value)) enabled.add(gate)
    else if (FALSE.has(value)) enabled.delete(gate)
    else error(() => `feature gate ${gate} is neither true nor false`)
  }
  if (found > MOST_ERRORS) errors.push(`and ${found - MOST_ERRORS} more errors`)
  return { enabled, errors }
}

function unknownGate(gate: string): string {
  const near = nearestName(gate, FEATURE_GATES)
  return `unknown feature gate ${shown(gate)}${near === '' ? '' : `, did you mean ${near}?`}`
}

function isKnown(gate: string): boolean {
  return FEATURE_GATES.some((known) => known === gate)
}
