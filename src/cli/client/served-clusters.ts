// The UpstreamClusters for a command: from a directory of files, or from the API server that holds them. In the latter case no Secret is
// read, because the output of commands doesn't depend on credentials.

import type { SourceError } from '../../gateway/api/resource-source.ts'
import { checkUpstreamCluster } from '../../gateway/api/upstream-cluster/checks.ts'
import type { UpstreamCluster } from '../../gateway/api/upstream-cluster/upstream-cluster.ts'
import { UPSTREAM_CLUSTERS } from '../../gateway/api/upstream-cluster-kind.ts'
import { compileCluster } from '../../gateway/core/cluster/compile-cluster.ts'
import type { CompiledCluster } from '../../gateway/core/cluster/compiled-cluster.ts'
import { exposedManifests } from '../../gateway/io/secrets/exposed-secrets.ts'
import { loadDirectory } from '../../gateway/io/sources/files/source.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { isRecord } from '../../kit/api/json/object-shape.ts'
import { REDACTED_BASE64 } from '../../kit/api/validation/redacted.ts'
import { nodePemChecks } from '../../pki/io/pem-checks.ts'
import { type ControlPlaneOptions, metadataOf, withControlPlane } from './control-plane.ts'

export interface ServedClustersOptions extends ControlPlaneOptions {
  /** Directory of files. Default: the API server given by kubeconfig and context. */
  readonly configDir?: string
}

export interface ServedClusters {
  /** The clusters that would be in force, by name. */
  readonly clusters: ReadonlyMap<string, CompiledCluster>
  /** Clusters that serve with their own certificate instead of the gateway's. */
  readonly withCertificate: ReadonlySet<string>
  /** One line each. */
  readonly problems: readonly string[]
  /** For messages: the directory, or `the API server`. */
  readonly where: string
  /** What to do if there are none. */
  readonly fixOfNone: string
}

/** undefined = they can't be read; the error was printed. @throws {UserError} if the directory can't be read */
export async function readServedClusters(options: ServedClustersOptions): Promise<ServedClusters | undefined> {
  const { configDir } = options
  if (configDir !== undefined) return await fromDirectory(configDir)
  let served: ServedClusters | undefined
  await withControlPlane({ ...options, needs: 'list of upstreamclusters' }, async (client) => {
    served = fromObjects((await client.list(UPSTREAM_CLUSTERS, '')).items)
    return 0
  })
  return served
}

async function fromDirectory(dir: string): Promise<ServedClusters> {
  const { clusters, problems } = await loadDirectory(dir, nodePemChecks)
  const exposed = exposedManifests(dir).map((file) => {
    return `warning: ${file}: holds secrets, and others on this machine may read it (chmod 600 ${file}; or leave out --config-dir and read the API server)`
  })
  return {
    clusters: new Map([...clusters].map(([name, cluster]) => [name, compileCluster(cluster)])),
    withCertificate: new Set([...clusters].flatMap(([name, { object }]) => (hasCertificate(object) ? [name] : []))),
    problems: [...problems.map(describeProblem), ...exposed],
    where: dir,
    fixOfNone: `run: portcullis check ${dir}`,
  }
}

function fromObjects(objects: readonly JsonObject[]): ServedClusters {
  const clusters = new Map<string, CompiledCluster>()
  const withCertificate = new Set<string>()
  const problems: string[] = []
  for (const object of objects) {
    const { name, resourceVersion = '' } = metadataOf(object)
    const found = checkUpstreamCluster(object, nodePemChecks).filter(
      ({ severity, path }) => severity === 'error' && !isHidden(object, path),
    )
    for (const error of found) problems.push(describeProblem({ ...error, file: name, line: 0 }))
    if (found.length > 0) continue
    // Validated above.
    const cluster = object as unknown as UpstreamCluster
    clusters.set(name, compileCluster({ object: cluster, revision: resourceVersion }))
    if (hasCertificate(cluster)) withCertificate.add(name)
  }
  return { clusters, withCertificate, problems, where: 'the API server', fixOfNone: 'is --kubeconfig the right one?' }
}

/** A key that the user may not read is left out: the output of commands doesn't depend on it. */
function isHidden(object: JsonObject, path: string): boolean {
  let value: unknown = object
  for (const field of path.split('.')) value = isRecord(value) ? value[field] : undefined
  return value === REDACTED_BASE64
}

function hasCertificate({ spec: { secureServing } }: UpstreamCluster): boolean {
  return (secureServing?.certData ?? '') !== '' || secureServing?.certRef !== undefined
}

function describeProblem({ file, line, path, message, fix, severity }: SourceError): string {
  const place = line > 0 ? `${file}:${line}` : file
  const where = [place, path].filter((part) => part !== '').join(': ')
  return `${severity}: ${where === '' ? '' : `${where}: `}${message}${fix === '' ? '' : ` (${fix})`}`
}
