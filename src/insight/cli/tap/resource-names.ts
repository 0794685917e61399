// Short and singular names of resources as used with kubectl. The gateway has no discovery of its clusters: it compares the plural
// in paths.

const SHORT: ReadonlyMap<string, string> = new Map([
  ['cj', 'cronjobs'],
  ['cm', 'configmaps'],
  ['crd', 'customresourcedefinitions'],
  ['crds', 'customresourcedefinitions'],
  ['cs', 'componentstatuses'],
  ['csr', 'certificatesigningrequests'],
  ['deploy', 'deployments'],
  ['ds', 'daemonsets'],
  ['ep', 'endpoints'],
  ['ev', 'events'],
  ['hpa', 'horizontalpodautoscalers'],
  ['ing', 'ingresses'],
  ['netpol', 'networkpolicies'],
  ['no', 'nodes'],
  ['ns', 'namespaces'],
  ['pdb', 'poddisruptionbudgets'],
  ['po', 'pods'],
  ['pv', 'persistentvolumes'],
  ['pvc', 'persistentvolumeclaims'],
  ['rs', 'replicasets'],
  ['sa', 'serviceaccounts'],
  ['sc', 'storageclasses'],
  ['sts', 'statefulsets'],
  ['svc', 'services'],
  ['uc', 'upstreamclusters'],
])

const OTHERS = ['secrets', 'jobs', 'leases', 'roles', 'rolebindings', 'clusterroles', 'clusterrolebindings', 'events']

const SINGULAR: ReadonlyMap<string, string> = new Map(
  [...SHORT.values(), ...OTHERS].map((name) => [singularOf(name), name]),
)

function singularOf(plural: string): string {
  // The only built-in kind whose singular ends with s, too.
  if (plural === 'endpoints') return plural
  if (plural.endsWith('ies')) return `${plural.slice(0, -3)}y`
  return plural.slice(0, /(sses|uses)$/.test(plural) ? -2 : -1)
}

/** `-po/log` and `-pod/log` become `-pods/log`; unknown names are unchanged. */
export function fullResourceName(text: string): string {
  const dash = text.startsWith('-') ? '-' : ''
  const name = /^[a-z]+/.exec(text.slice(dash.length))?.[0] ?? ''
  const full = SHORT.get(name) ?? SINGULAR.get(name)
  return full === undefined ? text : `${dash}${full}${text.slice(dash.length + name.length)}`
}
