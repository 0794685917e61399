// The columns of what pods run on, and of what they use and are reached by (kubernetes/pkg/printers/internalversion/printers.go).

import { listOf, recordOf, recordsOf, textOf } from '../../../kit/api/json/object-shape.ts'
import { ageOf } from '../../../kube/core/tables/ages.ts'
import { POD_PRINTER } from './pod-printer.ts'
import {
  AGE_COLUMN,
  at,
  type CellOf,
  firstOf,
  isDeleted,
  labelsCell,
  NAME_COLUMN,
  numberOf,
  objectName,
  type PrintedObject,
  type Printer,
  printerOf,
  selectorCell,
  sizeCell,
  sizeOf,
  tableColumn,
  textCell,
  textsOf,
  wideColumn,
  writtenOf,
} from './printer.ts'

/** By resource and group. */
export const CORE_PRINTERS: Readonly<Record<string, Printer>> = {
  pods: POD_PRINTER,
  nodes: printerOf(
    NAME_COLUMN,
    tableColumn('Status', statusOfNode),
    tableColumn('Roles', rolesOfNode),
    AGE_COLUMN,
    tableColumn('Version', textCell('status.nodeInfo.kubeletVersion')),
    wideColumn('Internal-IP', addressOf('InternalIP')),
    wideColumn('External-IP', addressOf('ExternalIP')),
    wideColumn('OS-Image', textCell('status.nodeInfo.osImage', '<unknown>')),
    wideColumn('Kernel-Version', kernelOf),
    wideColumn('Container-Runtime', textCell('status.nodeInfo.containerRuntimeVersion', '<unknown>')),
  ),
  namespaces: printerOf(NAME_COLUMN, tableColumn('Status', textCell('status.phase')), AGE_COLUMN),
  services: printerOf(
    NAME_COLUMN,
    tableColumn('Type', textCell('spec.type')),
    tableColumn('Cluster-IP', (service) => textOf(listOf(at(service, 'spec.clusterIPs'))[0]) || '<none>'),
    tableColumn('External-IP', externalIP),
    tableColumn('Port(s)', servicePorts),
    AGE_COLUMN,
    wideColumn('Selector', labelsCell('spec.selector')),
  ),
  endpoints: printerOf(NAME_COLUMN, tableColumn('Endpoints', endpointsOf), AGE_COLUMN),
  'endpointslices.discovery.k8s.io': printerOf(
    NAME_COLUMN,
    tableColumn('AddressType', textCell('addressType')),
    tableColumn('Ports', (slice) => firstOf(recordsOf(slice['ports']).map(portOf), MOST_SHOWN, '<unset>')),
    tableColumn('Endpoints', (slice) => firstOf(addressesOf(slice), MOST_SHOWN, '<unset>')),
    AGE_COLUMN,
  ),
  configmaps: printerOf(
    NAME_COLUMN,
    tableColumn('Data', ({ data, binaryData }) => sizeOf(data) + sizeOf(binaryData)),
    AGE_COLUMN,
  ),
  secrets: printerOf(
    NAME_COLUMN,
    tableColumn('Type', textCell('type')),
    tableColumn('Data', sizeCell('data')),
    AGE_COLUMN,
  ),
  serviceaccounts: printerOf(NAME_COLUMN, AGE_COLUMN),
  resourcequotas: printerOf(
    NAME_COLUMN,
    tableColumn('Request', quotas(false)),
    tableColumn('Limit', quotas(true)),
    AGE_COLUMN,
  ),
  persistentvolumes: printerOf(
    NAME_COLUMN,
    tableColumn('Capacity', (volume) => writtenOf(at(volume, 'spec.capacity.storage'), '0')),
    tableColumn('Access Modes', (volume) => accessModes(at(volume, 'spec.accessModes'))),
    tableColumn('Reclaim Policy', textCell('spec.persistentVolumeReclaimPolicy')),
    tableColumn('Status', phaseOfVolume),
    tableColumn('Claim', claimOf),
    tableColumn('StorageClass', storageClass),
    tableColumn('VolumeAttributesClass', textCell('spec.volumeAttributesClassName', '<unset>')),
    tableColumn('Reason', textCell('status.reason')),
    AGE_COLUMN,
    wideColumn('VolumeMode', textCell('spec.volumeMode', '<unset>')),
  ),
  persistentvolumeclaims: printerOf(
    NAME_COLUMN,
    tableColumn('Status', phaseOfVolume),
    tableColumn('Volume', textCell('spec.volumeName')),
    tableColumn(
      'Capacity',
      ofBound((claim) => writtenOf(at(claim, 'status.capacity.storage'), '0')),
    ),
    tableColumn(
      'Access Modes',
      ofBound((claim) => accessModes(at(claim, 'status.accessModes'))),
    ),
    tableColumn('StorageClass', storageClass),
    tableColumn('VolumeAttributesClass', textCell('spec.volumeAttributesClassName', '<unset>')),
    AGE_COLUMN,
    wideColumn('VolumeMode', textCell('spec.volumeMode', '<unset>')),
  ),
  events: eventPrinter(),
  'events.events.k8s.io': eventPrinter({
    involvedObject: 'regarding',
    source: 'deprecatedSource',
    message: 'note',
    firstTimestamp: 'deprecatedFirstTimestamp',
    lastTimestamp: 'deprecatedLastTimestamp',
    count: 'deprecatedCount',
    reportingComponent: 'reportingController',
  }),
  'ingresses.networking.k8s.io': printerOf(
    NAME_COLUMN,
    tableColumn('Class', textCell('spec.ingressClassName', '<none>')),
    tableColumn('Hosts', hostsOf),
    tableColumn('Address', balancersOf),
    tableColumn('Ports', (ingress) => (sizeOf(at(ingress, 'spec.tls')) > 0 ? '80, 443' : '80')),
    AGE_COLUMN,
  ),
  'ingressclasses.networking.k8s.io': printerOf(
    tableColumn('Name', nameWithDefault('ingressclass.kubernetes.io/is-default-class'), { format: 'name' }),
    tableColumn('Controller', textCell('spec.controller')),
    tableColumn('Parameters', parametersOf),
    AGE_COLUMN,
  ),
  'networkpolicies.networking.k8s.io': printerOf(
    NAME_COLUMN,
    tableColumn('Pod-Selector', selectorCell('spec.podSelector', '<none>', '<error>')),
    AGE_COLUMN,
  ),
}

const MOST_SHOWN = 3

function statusOfNode(node: PrintedObject): string {
  const conditions = recordsOf(at(node, 'status.conditions'))
  const ready = conditions.findLast(({ type }) => type === 'Ready')
  const status = ready === undefined ? 'Unknown' : ready['status'] === 'True' ? 'Ready' : 'NotReady'
  return at(node, 'spec.unschedulable') === true ? `${status},SchedulingDisabled` : status
}

const ROLE_PREFIX = 'node-role.kubernetes.io/'
const ROLE_LABEL = 'kubernetes.io/role'

function rolesOfNode(node: PrintedObject): string {
  const roles = Object.entries(recordOf(at(node, 'metadata.labels'))).map(([key, value]) => {
    if (key.startsWith(ROLE_PREFIX)) return key.slice(ROLE_PREFIX.length)
    return key === ROLE_LABEL ? textOf(value) : ''
  })
  return sortedSet(roles).join(',') || '<none>'
}

function sortedSet(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)].filter((one) => one !== '').sort()
}

function addressOf(type: string): CellOf {
  return (node) => {
    const address = recordsOf(at(node, 'status.addresses')).find((one) => one['type'] === type)
    return address === undefined ? '<none>' : textOf(address['address'])
  }
}

function kernelOf(node: PrintedObject): string {
  const { kernelVersion, architecture } = recordOf(at(node, 'status.nodeInfo'))
  const version = textOf(kernelVersion) || '<unknown>'
  return textOf(architecture) === '' ? version : `${version} (${textOf(architecture)})`
}

/** By which load balancers it is reached. */
function balancersOf(object: PrintedObject): string {
  const ingress = recordsOf(at(object, 'status.loadBalancer.ingress'))
  return sortedSet(ingress.map(({ ip, hostname }) => textOf(ip) || textOf(hostname))).join(',')
}

function externalIP(service: PrintedObject): string {
  const external = listOf(at(service, 'spec.externalIPs')).map(textOf).join(',')
  switch (at(service, 'spec.type')) {
    case 'ClusterIP':
    case 'NodePort':
      return external || '<none>'
    case 'LoadBalancer':
      return [balancersOf(service), external].filter((one) => one !== '').join(',') || '<pending>'
    case 'ExternalName':
      return textOf(at(service, 'spec.externalName'))
    default:
      return '<unknown>'
  }
}

function servicePorts(service: PrintedObject): string {
  const ports = recordsOf(at(service, 'spec.ports')).map(({ port, nodePort, protocol }) => {
    const ofNode = numberOf(nodePort) > 0 ? `:${numberOf(nodePort)}` : ''
    return `${numberOf(port)}${ofNode}/${textOf(protocol)}`
  })
  return ports.join(',') || '<none>'
}

function endpointsOf(endpoints: PrintedObject): string {
  const subsets = recordsOf(endpoints['subsets'])
  if (subsets.length === 0) return '<none>'
  const all = subsets.flatMap(({ addresses, ports }) => {
    const ips = textsOf(addresses, 'ip')
    const numbers = recordsOf(ports).map(({ port }) => numberOf(port))
    return numbers.length === 0 ? ips : numbers.flatMap((port) => ips.map((ip) => hostPort(ip, port)))
  })
  return firstOf(all, MOST_SHOWN, '')
}

function hostPort(ip: string, port: number): string {
  return ip.includes(':') ? `[${ip}]:${port}` : `${ip}:${port}`
}

function portOf({ port, name }: PrintedObject): string {
  if (typeof port === 'number') return String(port)
  return typeof name === 'string' ? name : '*'
}

function addressesOf(slice: PrintedObject): readonly string[] {
  return recordsOf(slice['endpoints']).flatMap(({ addresses }) => listOf(addresses).map(textOf))
}

/** What is used of a quota, and how much may be. @param areLimits that on limits, or that on requests and counts */
function quotas(areLimits: boolean): CellOf {
  return (quota) => {
    const { hard, used } = recordOf(quota['status'])
    const names = Object.keys(recordOf(hard)).filter((name) => name.startsWith('limits.') === areLimits)
    const amounts = names.sort().map((name) => {
      return `${name}: ${writtenOf(recordOf(used)[name], '0')}/${writtenOf(recordOf(hard)[name], '0')}`
    })
    return amounts.join(', ')
  }
}

const MODES = [
  ['ReadWriteOnce', 'RWO'],
  ['ReadOnlyMany', 'ROX'],
  ['ReadWriteMany', 'RWX'],
  ['ReadWriteOncePod', 'RWOP'],
] as const

function accessModes(modes: unknown): string {
  return MODES.flatMap(([mode, short]) => (listOf(modes).includes(mode) ? [short] : [])).join(',')
}

function phaseOfVolume(object: PrintedObject): string {
  return isDeleted(object) ? 'Terminating' : textOf(at(object, 'status.phase'))
}

function claimOf(volume: PrintedObject): string {
  const claim = at(volume, 'spec.claimRef')
  if (claim === undefined || claim === null) return ''
  const { namespace, name } = recordOf(claim)
  return `${textOf(namespace)}/${textOf(name)}`
}

const CLASS_ANNOTATION = 'volume.beta.kubernetes.io/storage-class'

function storageClass(object: PrintedObject): string {
  const annotation = recordOf(at(object, 'metadata.annotations'))[CLASS_ANNOTATION]
  return typeof annotation === 'string' ? annotation : textOf(at(object, 'spec.storageClassName'))
}

/** Claims without a volume have neither a capacity nor modes. */
function ofBound(cell: CellOf): CellOf {
  return (claim, nowMs) => (textOf(at(claim, 'spec.volumeName')) === '' ? '' : cell(claim, nowMs))
}

/** @param renamed what fields are called that are not called as in the core group */
function eventPrinter(renamed: Readonly<Record<string, string>> = {}): Printer {
  const field = (event: PrintedObject, name: string): unknown => event[renamed[name] ?? name]
  const involved = (event: PrintedObject): PrintedObject => recordOf(field(event, 'involvedObject'))
  const firstSeen: CellOf = (event, nowMs) => ageOf(field(event, 'firstTimestamp') ?? event['eventTime'], nowMs)
  return printerOf(
    tableColumn('Last Seen', (event, nowMs) => {
      const { series } = event
      if (series !== undefined && series !== null) return ageOf(recordOf(series)['lastObservedTime'], nowMs)
      const last = field(event, 'lastTimestamp')
      return last === undefined || last === null ? firstSeen(event, nowMs) : ageOf(last, nowMs)
    }),
    tableColumn('Type', textCell('type')),
    tableColumn('Reason', textCell('reason')),
    tableColumn('Object', (event) => {
      const kind = textOf(involved(event)['kind']).toLowerCase()
      const name = textOf(involved(event)['name'])
      return name === '' ? kind : `${kind}/${name}`
    }),
    wideColumn('Subobject', (event) => textOf(involved(event)['fieldPath'])),
    wideColumn('Source', (event) => {
      const { component, host } = recordOf(field(event, 'source'))
      const instance = textOf(host) || textOf(event['reportingInstance'])
      const program = textOf(component) || textOf(field(event, 'reportingComponent'))
      return instance === '' ? program : `${program}, ${instance}`
    }),
    tableColumn('Message', (event) => textOf(field(event, 'message')).trim()),
    wideColumn('First Seen', firstSeen),
    wideColumn('Count', (event) => {
      const { series } = event
      if (series !== undefined && series !== null) return numberOf(recordOf(series)['count'])
      return numberOf(field(event, 'count')) || 1
    }),
    tableColumn('Name', objectName, { format: 'name', priority: 1 }),
  )
}

function hostsOf(ingress: PrintedObject): string {
  const rules = recordsOf(at(ingress, 'spec.rules'))
  const named = rules.flatMap(({ host }, index) => (textOf(host) === '' ? [] : [{ host, index }]))
  const shown = named.slice(0, MOST_SHOWN).map(({ host }) => host)
  // Behind the third, rules without a host count, too.
  const last = named[MOST_SHOWN - 1]?.index ?? rules.length
  const more = last + 1 < rules.length ? ` + ${rules.length - MOST_SHOWN} more...` : ''
  return shown.length === 0 ? '*' : `${shown.join(',')}${more}`
}

export function nameWithDefault(...annotations: readonly string[]): CellOf {
  return (object) => {
    const its = recordOf(at(object, 'metadata.annotations'))
    const isDefault = annotations.some((annotation) => its[annotation] === 'true')
    const name = textOf(at(object, 'metadata.name'))
    return isDefault ? `${name} (default)` : name
  }
}

function parametersOf(ingressClass: PrintedObject): string {
  const parameters = at(ingressClass, 'spec.parameters')
  if (parameters === undefined || parameters === null) return '<none>'
  const { kind, apiGroup, name } = recordOf(parameters)
  const group = typeof apiGroup === 'string' ? `.${apiGroup}` : ''
  return `${textOf(kind)}${group}/${textOf(name)}`
}
