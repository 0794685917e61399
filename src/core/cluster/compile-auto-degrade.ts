// spec.degrade.auto with its defaults.

import { complete, fieldOf, type Schema } from '../../api/kube/json-schema.ts'
import { isEmptySelector } from '../../api/pod-protector/label-selector-checks.ts'
import type { AutoDegrade, AutoDegradeNodes, AutoDegradeUpstream } from '../../api/upstream-cluster/auto-degrade.ts'
import { AUTO_DEGRADE_SCHEMA } from '../../api/upstream-cluster/auto-degrade-schema.ts'
import type { AutoDegradeOptions, NodeTrigger, UpstreamTrigger } from '../incident/auto-degrade.ts'
import { parseDuration } from '../text/duration.ts'

export function compileAutoDegrade(
  given: AutoDegrade,
  schema: Schema<AutoDegrade> = AUTO_DEGRADE_SCHEMA,
): AutoDegradeOptions {
  const { nodes, upstream, shadow, recovery = {} } = complete(schema, given)
  return {
    nodes: nodes === undefined ? undefined : compileNodes(nodes, fieldOf(schema, 'nodes')),
    upstream: upstream === undefined ? undefined : compileUpstream(upstream, fieldOf(schema, 'upstream')),
    shadow,
    recovery,
  }
}

function compileNodes(given: AutoDegradeNodes, schema: Schema<AutoDegradeNodes>): NodeTrigger {
  const { okUnready, maxUnreadyPercent, exitPercent, ...times } = complete(schema, given)
  const { selector } = given
  return {
    okUnready,
    maxUnreadyPercent,
    exitPercent,
    enterAfterMs: ms(times.enterAfter),
    exitAfterMs: ms(times.exitAfter),
    startupMs: ms(times.maxStartupTime),
    staleAfterMs: ms(times.staleAfter),
    // One that matches everything is treated as absent.
    selector: selector === undefined || isEmptySelector(selector) ? undefined : selector,
  }
}

function compileUpstream(given: AutoDegradeUpstream, schema: Schema<AutoDegradeUpstream>): UpstreamTrigger {
  const { maxErrorPercent, minRequests, ...times } = complete(schema, given)
  return {
    maxErrorPercent,
    maxLatencyMs: ms(times.maxLatency),
    minRequests,
    windowMs: ms(times.window),
    enterAfterMs: ms(times.enterAfter),
    exitAfterMs: ms(times.exitAfter),
  }
}

/** One that is none has not passed the schema. */
function ms(text: string): number {
  return parseDuration(text) ?? 0
}
