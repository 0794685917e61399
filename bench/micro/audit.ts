// What the audit log costs a request, CPU time: rules that do not match, level None, and the two events of level Metadata.
// node bench/micro/audit.ts

import process from 'node:process'
import type { AuditPolicy, AuditRule } from '../../src/audit/core/policy.ts'
import { PolicyAudit } from '../../src/audit/io/events/policy-audit.ts'
import { createRecord, type RequestRecord } from '../../src/gateway/api/request-record.ts'

const ROUNDS = 300_000
const RUNS = 5
const RULES = 20

const request: RequestRecord = {
  ...createRecord(),
  auditId: '5a7c2f60-8a1f-4c7e-9d1c-2f60a1b2c3d4',
  startWallMs: 1_750_000_000_123,
  method: 'GET',
  target: '/api/v1/namespaces/shop/pods?limit=500&resourceVersion=0',
  path: '/api/v1/namespaces/shop/pods',
  cluster: 'prod',
  verb: 'list',
  isResourceRequest: true,
  apiVersion: 'v1',
  resource: 'pods',
  namespace: 'shop',
  user: 'system:serviceaccount:shop:ci-bot',
  uid: '0f5a8a7e-1f5e-4a0e-8d7e-6a1b2c3d4e5f',
  groups: ['system:serviceaccounts', 'system:serviceaccounts:shop', 'system:authenticated'],
  extra: { 'authentication.kubernetes.io/credential-id': ['JTI=0a770f5a-8a7e-4f5e-8a0e-8d7e6a1b2c3d'] },
  userAgent: 'kubectl/v1.36.0 (linux/amd64) kubernetes/abcdef0',
  remoteAddress: '10.1.2.3',
  policy: 0,
  rule: 0,
  flowControl: 'reads',
  endpoint: 'https://10.0.0.1:6443',
  code: 200,
  ttfbMs: 1.234567,
  durationMs: 2.345678,
}

const ANY: AuditRule = {
  level: 'Metadata',
  users: [],
  userGroups: [],
  verbs: [],
  resources: [],
  namespaces: [],
  nonResourceURLs: [],
  omitStages: [],
  omitManagedFields: undefined,
}
const NONE: AuditRule = { ...ANY, level: 'None' }
const others = (rule: (i: number) => Partial<AuditRule>): readonly AuditRule[] =>
  Array.from({ length: RULES }, (_, i) => ({ ...ANY, ...rule(i) }))

let bytes = 0

function measure(name: string, rules: readonly AuditRule[]): void {
  const policy: AuditPolicy = { rules, omitStages: [], omitManagedFields: false }
  const audit = new PolicyAudit({ policy, maxBodyBytes: 102_400, write: (line) => (bytes += line.length) })
  let best = Number.POSITIVE_INFINITY
  for (let run = 0; run < RUNS; run++) {
    const began = process.cpuUsage()
    for (let i = 0; i < ROUNDS; i++) {
      request.auditDecided = false
      audit.requestIdentified(request)
      audit.responseStarted(request)
      audit.requestEnded(request)
    }
    const { user, system } = process.cpuUsage(began)
    best = Math.min(best, user + system)
  }
  console.log(`${name.padEnd(48)} ${((best / ROUNDS) * 1000).toFixed(0)} ns a request`)
}

measure('level None, the first rule', [NONE])
measure(`level None behind ${RULES} rules for other resources`, [
  ...others((i) => ({ resources: [{ group: 'apps', resources: [`kind${i}`], resourceNames: [] }] })),
  NONE,
])
measure(`level None behind ${RULES} rules for its resource`, [
  ...others((i) => ({ verbs: [`verb${i}`], resources: [{ group: '', resources: ['pods'], resourceNames: [] }] })),
  NONE,
])
measure(`level None behind ${RULES} rules for other users`, [...others((i) => ({ users: [`user${i}`] })), NONE])
measure('level Metadata, two events', [ANY])
measure('level Metadata, RequestReceived left out', [{ ...ANY, omitStages: ['RequestReceived'] }])
console.log(`(${bytes} bytes)`)
