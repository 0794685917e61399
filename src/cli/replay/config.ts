// The configuration that a log is replayed against, with limits of its own: local ones, because a replay is one replica.

import { UserError } from '../../api/validation/field-errors.ts'
import { buildClusterIndex } from '../../core/cluster/cluster-index.ts'
import { compileCluster } from '../../core/cluster/compile-cluster.ts'
import type { CompiledCluster } from '../../core/cluster/compiled-cluster.ts'
import { Simulation } from '../../core/replay/simulation.ts'
import { nodePemChecks } from '../../io/pki/pem-checks.ts'
import { loadWithoutSecrets } from '../../io/sources/files/source.ts'
import { FlowTable } from '../../state/flow-tables.ts'
import { readServedClusters, type ServedClustersOptions } from '../client/served-clusters.ts'

/** @param path directory or file of UpstreamClusters. @throws {UserError} when there is an error in it: a broken object would not be in force */
export async function simulationOfFiles(path: string): Promise<Simulation> {
  // Secrets make no difference to what is decided: a pipeline that checks a change need not have them.
  const { clusters, problems } = await loadWithoutSecrets(path, nodePemChecks)
  const error = problems.find(({ severity }) => severity === 'error')
  if (error !== undefined) {
    const where = [error.file, error.path].filter((part) => part !== '').join(': ')
    throw new UserError(`${path}: ${where}: ${error.message}`, error.fix)
  }
  if (clusters.size === 0) throw new UserError(`${path} holds no UpstreamCluster`, 'name a file or directory of some')
  return simulationOf([...clusters.values()].map((cluster) => compileCluster(cluster)))
}

/** Of the API server that holds the objects. undefined = it cannot be read; the error was printed. */
export async function simulationOfServer(options: ServedClustersOptions): Promise<Simulation | undefined> {
  const served = await readServedClusters(options)
  if (served === undefined) return undefined
  for (const problem of served.problems) options.err(`${problem}\n`)
  if (served.clusters.size === 0) throw new UserError(`${served.where} has no UpstreamCluster`, served.fixOfNone)
  return simulationOf([...served.clusters.values()])
}

function simulationOf(clusters: readonly CompiledCluster[]): Simulation {
  const local = clusters.map(withLocalLimits)
  const tables = new Map(local.map((cluster) => [cluster, tableOf(cluster)]))
  return new Simulation(buildClusterIndex(local), (cluster) => tables.get(cluster) ?? tableOf(cluster))
}

/** The log is of one replica: its part of a limit that replicas share is the local one. */
function withLocalLimits(cluster: CompiledCluster): CompiledCluster {
  return { ...cluster, schemas: cluster.schemas.map((schema) => ({ ...schema, shared: undefined })) }
}

function tableOf({ schemas }: CompiledCluster): FlowTable {
  const table = new FlowTable()
  table.update(schemas, 0)
  return table
}
