// Cells of printer columns (apiextensions-apiserver pkg/registry/customresource/tableconvertor).

import type { PrinterColumn } from '../../api/resource-kind.ts'
import { ageOf } from './ages.ts'

/** The server turns a time into an age: the client only prints text. */
export function cellOf(type: PrinterColumn['type'], value: unknown, nowMs: number): string | number | boolean | null {
  if (value === undefined || value === null) return null
  switch (type) {
    case 'string':
      return typeof value === 'object' ? JSON.stringify(value) : String(value)
    case 'integer':
      return typeof value === 'number' ? Math.trunc(value) : null
    case 'number':
      return typeof value === 'number' ? value : null
    case 'boolean':
      return typeof value === 'boolean' ? value : null
    case 'date':
      return typeof value === 'string' ? ageOf(value, nowMs) : null
  }
}
