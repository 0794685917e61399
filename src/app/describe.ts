// What /debug/config shows: the truth in force, without secrets (the admin routes redact it once more).

import type { Clock } from '../api/ports.ts'
import { effectiveMode } from '../core/degrade.ts'
import type { LiveCluster } from '../state/clusters.ts'
import type { Parts } from './wire.ts'

export function describeState(parts: Parts, clock: Clock): object {
  const { gateway } = parts
  const { problems, appliedAtMs } = parts.config()
  return {
    generation: gateway.clusters.generation,
    appliedAt: appliedAtMs === 0 ? null : new Date(appliedAtMs).toISOString(),
    draining: gateway.draining,
    running: gateway.running.size,
    tokensRemembered: gateway.tokens.size(),
    problems,
    connections: [...gateway.upstreams.describe()],
    clusters: [...gateway.clusters.values()].map((live) => describeCluster(live, clock)),
  }
}

function describeCluster(live: LiveCluster, clock: Clock): object {
  const { client, serving, ...compiled } = live.compiled
  return {
    ...compiled,
    client: {
      insecure: client.insecure,
      serverName: client.serverName,
      hasClientCertificate: client.cert !== '',
      hasBearerToken: client.bearerToken !== '',
    },
    serving: { hasCertificate: serving.cert !== '', hasClientCA: serving.clientCA !== '' },
    effectiveDegradeMode: effectiveMode(live.compiled.degrade, clock.now()),
    endpointStatus: live.endpoints.describe(clock.monotonic()),
    flowControl: live.flows.describe(clock.monotonic()),
  }
}
