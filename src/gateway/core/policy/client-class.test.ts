import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ClientClass, clientClassOf } from './client-class.ts'

const AGENT =
  'kube-controller-manager/v1.34.1 (linux/amd64) kubernetes/9bc6e4f/system:serviceaccount:kube-system:node-controller'

const ROWS: readonly [string, string[], string, ClientClass | undefined][] = [
  ['system:kube-controller-manager', [], 'kube-controller-manager/v1.34.1 (linux/amd64)', 'controllerManager'],
  ['system:kube-controller-manager', [], '', 'controllerManager'],
  ['system:serviceaccount:kube-system:node-controller', ['system:serviceaccounts'], AGENT, 'controllerManager'],
  ['system:serviceaccount:kube-system:coredns', ['system:serviceaccounts'], 'coredns/1.11', undefined],
  // The User-Agent is unverified.
  ['alice', ['dev'], AGENT, undefined],
  ['system:serviceaccount:default:robot', ['system:serviceaccounts'], AGENT, undefined],
  ['system:node:n1', ['system:nodes', 'system:authenticated'], 'kubelet/v1.34', 'kubelets'],
  ['system:node:n1', ['system:authenticated'], 'kubelet/v1.34', undefined],
  ['system:nodes', ['system:nodes'], '', undefined],
  ['system:kube-scheduler', [], '', undefined],
  ['system:', [], '', undefined],
  ['', [], '', undefined],
  ['system:anonymous', ['system:unauthenticated'], AGENT, undefined],
]

test('who keeps nodes Ready, and who evicts pods', () => {
  for (const [name, groups, agent, expected] of ROWS)
    assert.equal(clientClassOf({ name, uid: '', groups, extra: {} }, agent), expected, name)
})
