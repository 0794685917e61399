// The columns of what a cluster is administered with: rights, storage, admission, priorities, certificates, devices
// (kubernetes/pkg/printers/internalversion/printers.go).

import { listOf, recordOf, recordsOf, textOf } from '../../../kit/api/json/object-shape.ts'
import { ageOf, humanDuration } from '../../../kube/core/tables/ages.ts'
import { nameWithDefault } from './core-printers.ts'
import {
  AGE_COLUMN,
  at,
  type Cell,
  type CellOf,
  countColumn,
  hasCondition,
  isDeleted,
  labelsCell,
  NAME_COLUMN,
  numberCell,
  numberOf,
  type PrintedColumn,
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
} from './printer.ts'

const SECOND_MS = 1000

const BINDING: Printer = printerOf(
  NAME_COLUMN,
  tableColumn('Role', ({ roleRef }) => `${textOf(recordOf(roleRef)['kind'])}/${textOf(recordOf(roleRef)['name'])}`),
  AGE_COLUMN,
  wideColumn('Users', subjects('User')),
  wideColumn('Groups', subjects('Group')),
  wideColumn('ServiceAccounts', subjects('ServiceAccount')),
)
const WEBHOOKS: Printer = printerOf(NAME_COLUMN, countColumn('Webhooks', sizeCell('webhooks')), AGE_COLUMN)
const POLICY_BINDING: Printer = printerOf(
  NAME_COLUMN,
  tableColumn('PolicyName', textCell('spec.policyName')),
  tableColumn('ParamRef', paramRef),
  AGE_COLUMN,
)
const PARAM_KIND = tableColumn('ParamKind', ({ spec }) => {
  const { paramKind } = recordOf(spec)
  if (paramKind === undefined || paramKind === null) return '<unset>'
  return `${textOf(recordOf(paramKind)['apiVersion'])}/${textOf(recordOf(paramKind)['kind'])}`
})
const NAME_AND_AGE: Printer = printerOf(NAME_COLUMN, AGE_COLUMN)

/** By resource and group. */
export const CLUSTER_PRINTERS: Readonly<Record<string, Printer>> = {
  'rolebindings.rbac.authorization.k8s.io': BINDING,
  'clusterrolebindings.rbac.authorization.k8s.io': BINDING,
  'leases.coordination.k8s.io': printerOf(
    NAME_COLUMN,
    tableColumn('Holder', textCell('spec.holderIdentity')),
    AGE_COLUMN,
  ),
  'leasecandidates.coordination.k8s.io': printerOf(
    NAME_COLUMN,
    tableColumn('LeaseName', textCell('spec.leaseName')),
    tableColumn('BinaryVersion', textCell('spec.binaryVersion')),
    tableColumn('EmulationVersion', textCell('spec.emulationVersion')),
    AGE_COLUMN,
  ),
  'priorityclasses.scheduling.k8s.io': printerOf(
    NAME_COLUMN,
    countColumn('Value', numberCell('value')),
    flag('Global-Default', 'globalDefault', false),
    AGE_COLUMN,
    tableColumn('PreemptionPolicy', textCell('preemptionPolicy')),
  ),
  'runtimeclasses.node.k8s.io': printerOf(NAME_COLUMN, tableColumn('Handler', textCell('handler')), AGE_COLUMN),
  'certificatesigningrequests.certificates.k8s.io': printerOf(
    NAME_COLUMN,
    AGE_COLUMN,
    tableColumn('SignerName', textCell('spec.signerName', '<none>')),
    tableColumn('Requestor', textCell('spec.username')),
    tableColumn('RequestedDuration', requestedDuration),
    tableColumn('Condition', statusOfRequest),
  ),
  'clustertrustbundles.certificates.k8s.io': printerOf(
    NAME_COLUMN,
    tableColumn('SignerName', textCell('spec.signerName', '<none>')),
  ),
  'podcertificaterequests.certificates.k8s.io': printerOf(
    NAME_COLUMN,
    tableColumn('PodName', textCell('spec.podName')),
    tableColumn('ServiceAccountName', textCell('spec.serviceAccountName')),
    tableColumn('NodeName', textCell('spec.nodeName')),
    tableColumn('SignerName', textCell('spec.signerName')),
    tableColumn('State', stateOfRequest),
    tableColumn('UnverifiedUserAnnotations', labelsCell('spec.unverifiedUserAnnotations')),
  ),
  'storageclasses.storage.k8s.io': printerOf(
    tableColumn(
      'Name',
      nameWithDefault(
        'storageclass.kubernetes.io/is-default-class',
        'storageclass.beta.kubernetes.io/is-default-class',
      ),
      { format: 'name' },
    ),
    tableColumn('Provisioner', textCell('provisioner')),
    tableColumn('ReclaimPolicy', textCell('reclaimPolicy', 'Delete')),
    tableColumn('VolumeBindingMode', textCell('volumeBindingMode', 'Immediate')),
    tableColumn('AllowVolumeExpansion', ({ allowVolumeExpansion }) => allowVolumeExpansion === true),
    AGE_COLUMN,
  ),
  'volumeattributesclasses.storage.k8s.io': printerOf(
    NAME_COLUMN,
    tableColumn('DriverName', textCell('driverName')),
    AGE_COLUMN,
  ),
  'volumeattachments.storage.k8s.io': printerOf(
    NAME_COLUMN,
    tableColumn('Attacher', textCell('spec.attacher'), { format: 'name' }),
    tableColumn('PV', textCell('spec.source.persistentVolumeName')),
    tableColumn('Node', textCell('spec.nodeName')),
    flag('Attached', 'status.attached', false),
    AGE_COLUMN,
  ),
  'csinodes.storage.k8s.io': printerOf(NAME_COLUMN, countColumn('Drivers', sizeCell('spec.drivers')), AGE_COLUMN),
  'csidrivers.storage.k8s.io': printerOf(
    NAME_COLUMN,
    flag('AttachRequired', 'spec.attachRequired', true),
    flag('PodInfoOnMount', 'spec.podInfoOnMount', false),
    flag('StorageCapacity', 'spec.storageCapacity', false),
    tableColumn('TokenRequests', (driver) => {
      const requests = at(driver, 'spec.tokenRequests')
      return Array.isArray(requests) ? textsOf(requests, 'audience').join(',') : '<unset>'
    }),
    flag('RequiresRepublish', 'spec.requiresRepublish', false),
    tableColumn('Modes', (driver) => listOf(at(driver, 'spec.volumeLifecycleModes')).map(textOf).join(',') || '<none>'),
    AGE_COLUMN,
  ),
  'mutatingwebhookconfigurations.admissionregistration.k8s.io': WEBHOOKS,
  'validatingwebhookconfigurations.admissionregistration.k8s.io': WEBHOOKS,
  'validatingadmissionpolicies.admissionregistration.k8s.io': printerOf(
    NAME_COLUMN,
    countColumn('Validations', sizeCell('spec.validations')),
    PARAM_KIND,
    AGE_COLUMN,
  ),
  'mutatingadmissionpolicies.admissionregistration.k8s.io': printerOf(
    NAME_COLUMN,
    countColumn('Mutations', sizeCell('spec.mutations')),
    PARAM_KIND,
    AGE_COLUMN,
  ),
  'validatingadmissionpolicybindings.admissionregistration.k8s.io': POLICY_BINDING,
  'mutatingadmissionpolicybindings.admissionregistration.k8s.io': POLICY_BINDING,
  'flowschemas.flowcontrol.apiserver.k8s.io': printerOf(
    NAME_COLUMN,
    tableColumn('PriorityLevel', textCell('spec.priorityLevelConfiguration.name')),
    tableColumn('MatchingPrecedence', numberCell('spec.matchingPrecedence')),
    tableColumn('DistinguisherMethod', textCell('spec.distinguisherMethod.type', '<none>')),
    AGE_COLUMN,
    tableColumn('MissingPL', (schema) => {
      const dangling = recordsOf(at(schema, 'status.conditions')).find(({ type }) => type === 'Dangling')
      return dangling === undefined ? '?' : textOf(dangling['status'])
    }),
  ),
  'prioritylevelconfigurations.flowcontrol.apiserver.k8s.io': printerOf(
    NAME_COLUMN,
    tableColumn('Type', textCell('spec.type')),
    tableColumn('NominalConcurrencyShares', given('spec.limited', 'nominalConcurrencyShares')),
    tableColumn('Queues', given('spec.limited.limitResponse.queuing', 'queues')),
    tableColumn('HandSize', given('spec.limited.limitResponse.queuing', 'handSize')),
    tableColumn('QueueLengthLimit', given('spec.limited.limitResponse.queuing', 'queueLengthLimit')),
    AGE_COLUMN,
  ),
  'deviceclasses.resource.k8s.io': NAME_AND_AGE,
  'resourceclaimtemplates.resource.k8s.io': NAME_AND_AGE,
  'resourceclaims.resource.k8s.io': printerOf(NAME_COLUMN, tableColumn('State', stateOfClaim), AGE_COLUMN),
  'resourceslices.resource.k8s.io': printerOf(
    NAME_COLUMN,
    tableColumn('Node', textCell('spec.nodeName')),
    tableColumn('Driver', textCell('spec.driver')),
    tableColumn('Pool', textCell('spec.pool.name')),
    AGE_COLUMN,
  ),
  'devicetaintrules.resource.k8s.io': printerOf(
    NAME_COLUMN,
    tableColumn('Key', textCell('spec.taint.key')),
    tableColumn('Value', textCell('spec.taint.value')),
    tableColumn('Effect', textCell('spec.taint.effect')),
    tableColumn('TimeAdded', (rule, nowMs) => {
      const added = at(rule, 'spec.taint.timeAdded')
      return typeof added === 'string' ? ageOf(added, nowMs) : ''
    }),
    AGE_COLUMN,
  ),
  'servicecidrs.networking.k8s.io': printerOf(
    NAME_COLUMN,
    tableColumn('CIDRs', (range) => listOf(at(range, 'spec.cidrs')).map(textOf).join(',')),
    AGE_COLUMN,
  ),
  'ipaddresses.networking.k8s.io': printerOf(NAME_COLUMN, tableColumn('ParentRef', parentRef)),
}

function flag(name: string, path: string, absent: boolean): PrintedColumn {
  const cell: CellOf = (object) => {
    const value = at(object, path)
    return typeof value === 'boolean' ? value : absent
  }
  return tableColumn(name, cell, { type: 'boolean' })
}

/** A number of a part that may be missing. */
function given(path: string, key: string): CellOf {
  return (object): Cell => {
    const part = at(object, path)
    return part === undefined || part === null ? '<none>' : numberOf(recordOf(part)[key])
  }
}

function subjects(kind: string): CellOf {
  return (binding) => {
    const names = recordsOf(binding['subjects']).flatMap((subject) => {
      if (subject['kind'] !== kind) return []
      const name = textOf(subject['name'])
      const namespace = textOf(subject['namespace'])
      return kind === 'ServiceAccount' && namespace !== '' ? [`${namespace}/${name}`] : [name]
    })
    return names.join(', ')
  }
}

const labelSelectorOfParams = selectorCell('spec.paramRef.selector', '', '<error>')

function paramRef(binding: PrintedObject, nowMs: number): Cell {
  const reference = at(binding, 'spec.paramRef')
  const { name, namespace } = recordOf(reference)
  if (textOf(name) !== '') return `${textOf(namespace) || '*'}/${textOf(name)}`
  return labelSelectorOfParams(binding, nowMs) || '<unset>'
}

function requestedDuration(request: PrintedObject): string {
  const seconds = at(request, 'spec.expirationSeconds')
  return typeof seconds === 'number' ? humanDuration(seconds * SECOND_MS) : '<none>'
}

function statusOfRequest(request: PrintedObject): string {
  const has = (type: string): boolean => hasCondition(request, type, undefined)
  const decided = has('Denied') ? 'Denied' : has('Approved') ? 'Approved' : 'Pending'
  const failed = has('Failed') ? ',Failed' : ''
  return `${decided}${failed}${textOf(at(request, 'status.certificate')) === '' ? '' : ',Issued'}`
}

function stateOfRequest(request: PrintedObject): string {
  return ['Issued', 'Denied', 'Failed'].find((type) => hasCondition(request, type, undefined)) ?? 'Pending'
}

function stateOfClaim(claim: PrintedObject): string {
  const allocation = at(claim, 'status.allocation')
  const isAllocated = allocation !== undefined && allocation !== null
  const states = [
    ...(isDeleted(claim) ? ['deleted'] : []),
    ...(isAllocated ? ['allocated'] : isDeleted(claim) ? [] : ['pending']),
    ...(isAllocated && sizeOf(at(claim, 'status.reservedFor')) > 0 ? ['reserved'] : []),
  ]
  return states.join(',')
}

function parentRef(address: PrintedObject): string {
  const reference = at(address, 'spec.parentRef')
  if (reference === undefined || reference === null) return '<none>'
  const { group, resource, namespace, name } = recordOf(reference)
  const kind = (textOf(group) === '' ? textOf(resource) : `${textOf(resource)}.${textOf(group)}`).toLowerCase()
  return [kind, textOf(namespace), textOf(name)].filter((part, index) => index !== 1 || part !== '').join('/')
}
