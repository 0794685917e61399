// The autoscaler's status up to 1.29: lines for people (cluster-autoscaler/clusterstate/utils/status.go, api/utils.go).

import { type AutoscalerStatus, goTime, type NodeGroupStatus } from './status.ts'

type Section = 'Health' | 'ScaleUp' | 'ScaleDown'
type Mutable<T> = { -readonly [Key in keyof T]: T[Key] }

/** `  Health:      Healthy (ready=4 unready=0 ... cloudProviderTarget=4 (minSize=1, maxSize=5))` */
const STATUS_LINE = /^ {2}(Health|ScaleUp|ScaleDown): +(\w+)(?: \((.*)\))?$/
const NAME_LINE = /^ {2}Name: +(\S+)$/
const SINCE_LINE = /^ +LastTransitionTime: +(.+)$/
const HEAD_LINE = /^Cluster-autoscaler status at (.+):$/

/** @returns undefined = it is not such a text */
export function readTextStatus(text: string): AutoscalerStatus | undefined {
  const [head = '', ...lines] = text.split('\n')
  const [, written] = HEAD_LINE.exec(head) ?? []
  if (written === undefined) return undefined
  const wide: Mutable<NodeGroupStatus> = emptyGroup('')
  const groups: Mutable<NodeGroupStatus>[] = []
  let section: Section | undefined
  for (const line of lines) {
    const [, name] = NAME_LINE.exec(line) ?? []
    if (name !== undefined) groups.push(emptyGroup(name))
    const group = groups.at(-1) ?? wide
    const [, part, status = '', facts = ''] = STATUS_LINE.exec(line) ?? []
    const [, since] = SINCE_LINE.exec(line) ?? []
    if (part === 'Health' || part === 'ScaleUp' || part === 'ScaleDown') {
      section = part
      take(group, section, status, facts)
    } else if (since !== undefined && section === 'ScaleUp') group.scaleUpSinceMs = goTime(since)
  }
  const { health, scaleUp, scaleDown } = wide
  // Before its first loop it wrote "Initializing" in the place of a status.
  const state = health === '' ? 'Initializing' : 'Running'
  return { state, writtenAtMs: goTime(written), health, scaleUp, scaleDown, groups }
}

function take(group: Mutable<NodeGroupStatus>, section: Section, status: string, facts: string): void {
  if (section === 'ScaleUp') group.scaleUp = status
  else if (section === 'ScaleDown') group.scaleDown = status
  else {
    const fact = (name: string): number => Number(new RegExp(`\\b${name}=(\\d{1,9})\\b`).exec(facts)?.[1] ?? 0)
    group.health = status
    group.minSize = fact('minSize')
    group.maxSize = fact('maxSize')
    group.target = fact('cloudProviderTarget')
    group.registered = fact('registered')
    group.ready = fact('ready')
    group.unready = fact('unready')
    group.longUnregistered = fact('longUnregistered')
  }
}

function emptyGroup(name: string): NodeGroupStatus {
  const texts = { health: '', scaleUp: '', scaleDown: '', errorCode: '', errorMessage: '' }
  const counts = { minSize: 0, maxSize: 0, target: 0, registered: 0, ready: 0, unready: 0, longUnregistered: 0 }
  return { name, ...texts, ...counts, scaleUpSinceMs: 0 }
}
