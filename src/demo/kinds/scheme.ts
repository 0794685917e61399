// Every kind that the demo's clusters serve.

import { EVENTS, LEASES, NAMESPACES, SECRETS } from '../../api/kinds/scheme.ts'
import type { ResourceKind } from '../../api/ports/resource-kind.ts'
import { CONFIG_MAPS, NODES, SERVICE_ACCOUNTS, SERVICES } from './core-kinds.ts'
import { PODS } from './pod-kind.ts'
import { DEPLOYMENTS, REPLICA_SETS } from './workload-kinds.ts'

export const DEMO_SCHEME: readonly ResourceKind[] = [
  PODS,
  NODES,
  NAMESPACES,
  SERVICES,
  CONFIG_MAPS,
  SECRETS,
  SERVICE_ACCOUNTS,
  EVENTS,
  DEPLOYMENTS,
  REPLICA_SETS,
  LEASES,
]
