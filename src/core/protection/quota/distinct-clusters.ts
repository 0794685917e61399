// Which UpstreamClusters of a cell lead to different clusters, as far as that can be told without asking them.

export interface CellCluster {
  readonly name: string
  /** Of its endpoints. */
  readonly urls: readonly string[]
  /** Its pods are to be counted. */
  readonly counts: boolean
}

/**
 * One name for each cluster: those that have an endpoint in common, directly or by others, are one. The first that counts, or else
 * the first.
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
