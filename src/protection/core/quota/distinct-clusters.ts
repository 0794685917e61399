// Which UpstreamClusters of a cell lead to different clusters, as far as can be told without contacting them.

interface CellCluster {
  readonly name: string
  /** The URLs of its endpoints. */
  readonly urls: readonly string[]
  /** Whether its pods are counted. */
  readonly counts: boolean
}

/**
 * One name per cluster: UpstreamClusters that share an endpoint, directly or through others, are one. Returns the first that counts its
 * pods, or else the first.
 * @param clusters sorted by name
 */
export function distinctClusters(clusters: readonly CellCluster[]): readonly string[] {
  let groups: (readonly CellCluster[])[] = []
  for (const cluster of clusters) {
    const isSame = (group: readonly CellCluster[]): boolean =>
      group.some(({ urls }) => urls.some((url) => cluster.urls.includes(url)))
    const joined = [...groups.filter(isSame).flat(), cluster]
    groups = [...groups.filter((group) => !isSame(group)), joined]
  }
  const names = groups.flatMap((group) => (group.find(({ counts }) => counts) ?? group[0])?.name ?? [])
  return clusters.map(({ name }) => name).filter((name) => names.includes(name))
}
