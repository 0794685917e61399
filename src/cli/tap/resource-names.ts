// Short names of resources as kubectl's users know them. The gateway has no discovery of its clusters: it compares what stands in paths.

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

/** `-po/log` is `-pods/log`; what is not known stays. */
export function fullResourceName(text: string): string {
  const dash = text.startsWith('-') ? '-' : ''
  const name = /^[a-z]+/.exec(text.slice(dash.length))?.[0] ?? ''
  const full = SHORT.get(name)
  return full === undefined ? text : `${dash}${full}${text.slice(dash.length + name.length)}`
}
