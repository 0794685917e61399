// Node, Service, ConfigMap and ServiceAccount (v1), in the demo's version.

import { randomInt } from 'node:crypto'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { map, text, wholeNumber } from '../../kit/api/json/json-schema.ts'
import { foreignKind, CONFIG_MAPS as NAMED_CONFIG_MAPS } from '../../kube/api/kinds/foreign-kinds.ts'
import { countData } from '../../kube/api/kinds/secret-kind.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import { listAt, numberAt, objectAt, textAt, valueAt } from './json.ts'
import { AGE, column, listBy, named, openKind, openObject, statusWith, textColumn } from './rows.ts'

const core = (kind: string, plural: string, namespaced: boolean): ResourceKind =>
  foreignKind({ group: '', version: 'v1', kind, plural, namespaced })

export const DEMO_NODES: ResourceKind = {
  ...core('Node', 'nodes', false),
  shortNames: ['no'],
  hasGeneration: false,
  schema: openKind('Node is a machine that pods run on.', 'v1', 'Node', {
    spec: openObject('How it is used.'),
    status: statusWith({ addresses: listBy(['type'], 'Where it is reached.', openObject('An address.')) }),
  }),
  columns: [
    column('Status', nodeStatus),
    column('Roles', nodeRoles),
    AGE,
    textColumn('Version', 'status.nodeInfo.kubeletVersion'),
    column('Internal-IP', (node) => textAt(listAt(node, 'status.addresses')[0], 'address') || '<none>', 'string', 1),
  ],
  selectableFields: ['spec.unschedulable'],
}

export const SERVICES: ResourceKind = {
  ...core('Service', 'services', true),
  shortNames: ['svc'],
  categories: ['all'],
  hasGeneration: false,
  schema: openKind('Service is an address for pods.', 'v1', 'Service', {
    spec: openObject('Which pods, and how.', {
      type: text('ClusterIP, NodePort, LoadBalancer or ExternalName.', { default: 'ClusterIP' }),
      ports: listBy(
        ['port', 'protocol'],
        'Ports of the address.',
        openObject('A port.', {
          port: wholeNumber('Its number.'),
          protocol: text('TCP, UDP or SCTP.', { default: 'TCP' }),
        }),
      ),
    }),
    status: statusWith(),
  }),
  columns: [
    textColumn('Type', 'spec.type'),
    textColumn('Cluster-IP', 'spec.clusterIP'),
    column('External-IP', () => '<none>'),
    column('Port(s)', servicePorts),
    AGE,
  ],
  selectableFields: ['spec.clusterIP', 'spec.type'],
  prepare: (service) => ({ ...service, spec: { clusterIP: clusterIP(), ...objectAt(service, 'spec') } }),
}

export const DEMO_CONFIG_MAPS: ResourceKind = {
  ...NAMED_CONFIG_MAPS,
  shortNames: ['cm'],
  hasStatus: false,
  hasGeneration: false,
  schema: openKind('ConfigMap holds configuration.', 'v1', 'ConfigMap', {
    data: map('The texts by key.', text('A text.')),
  }),
  columns: [column('Data', countData, 'integer'), AGE],
}

export const SERVICE_ACCOUNTS: ResourceKind = {
  ...core('ServiceAccount', 'serviceaccounts', true),
  shortNames: ['sa'],
  hasStatus: false,
  hasGeneration: false,
  schema: openKind('ServiceAccount is the identity of the processes in a pod.', 'v1', 'ServiceAccount', {
    secrets: listBy(['name'], 'Secrets that its pods may mount.', named('A Secret.')),
  }),
  columns: [column('Secrets', (one) => listAt(one, 'secrets').length, 'integer'), AGE],
}

function nodeStatus(node: JsonObject): string {
  const ready = listAt(node, 'status.conditions').find((condition) => textAt(condition, 'type') === 'Ready')
  const status = textAt(ready, 'status') === 'True' ? 'Ready' : 'NotReady'
  return valueAt(node, 'spec.unschedulable') === true ? `${status},SchedulingDisabled` : status
}

function nodeRoles(node: JsonObject): string {
  const prefix = 'node-role.kubernetes.io/'
  const roles = Object.keys(objectAt(node, 'metadata.labels')).filter((label) => label.startsWith(prefix))
  return roles.map((label) => label.slice(prefix.length)).join(',') || '<none>'
}

function servicePorts(service: JsonObject): string {
  const ports = listAt(service, 'spec.ports').map((one) => `${numberAt(one, 'port')}/${textAt(one, 'protocol')}`)
  return ports.join(',') || '<none>'
}

function clusterIP(): string {
  return `10.96.${randomInt(256)}.${1 + randomInt(254)}`
}
