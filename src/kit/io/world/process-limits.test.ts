import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryLimit } from './process-limits.ts'

const files =
  (content: Readonly<Record<string, string>>) =>
  (path: string): string | undefined =>
    content[path]

test('version 2: the smallest limit of the group and those that it is in', () => {
  const of = files({
    '/proc/self/cgroup': '0::/kubepods/pod1/c1\n',
    '/sys/fs/cgroup/kubepods/pod1/c1/memory.max': 'max\n',
    '/sys/fs/cgroup/kubepods/pod1/memory.max': '2147483648\n',
    '/sys/fs/cgroup/kubepods/memory.max': '8589934592\n',
  })
  assert.equal(memoryLimit(of), 2 ** 31)
})

test('version 2 in a container, which sees its own group as the root', () => {
  assert.equal(
    memoryLimit(files({ '/proc/self/cgroup': '0::/\n', '/sys/fs/cgroup/memory.max': '1073741824\n' })),
    2 ** 30,
  )
})

test('version 1, also where the path is that of the host', () => {
  const of = files({
    '/proc/self/cgroup': '4:cpu,cpuacct:/docker/abc\n9:memory:/docker/abc\n0::/docker/abc\n',
    '/sys/fs/cgroup/memory/memory.limit_in_bytes': '536870912\n',
  })
  assert.equal(memoryLimit(of), 2 ** 29)
})

test('none: the largest number of version 1, max, and a system without groups', () => {
  const v1 = {
    '/proc/self/cgroup': '9:memory:/\n',
    '/sys/fs/cgroup/memory/memory.limit_in_bytes': '9223372036854771712\n',
  }
  assert.equal(memoryLimit(files(v1)), 0)
  assert.equal(memoryLimit(files({ '/proc/self/cgroup': '0::/\n', '/sys/fs/cgroup/memory.max': 'max\n' })), 0)
  assert.equal(memoryLimit(files({})), 0)
})

test('this process has a limit, or none', () => {
  assert.ok(memoryLimit() >= 0)
})
