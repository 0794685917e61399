import assert from 'node:assert/strict'
import { test } from 'node:test'
import { textTable } from './text-table.ts'

test('columns are aligned as a terminal shows them', () => {
  const rows = [
    ['NAME', 'FOR'],
    ['a', '漢字', 'x'],
    ['bb', 'e\u0301', ''],
  ]
  assert.equal(textTable(rows, ' '), ' NAME  FOR\n a     漢字  x\n bb    e\u0301\n')
  assert.equal(textTable([]), '')
})
