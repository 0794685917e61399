// Registers pod protection. No other file of the program imports it; scaling does (program/subjects/subjects.ts).

import { POD_PROTECTORS } from './api/pod-protector-kind.ts'
import { addProtect } from './cli/program.ts'

export const POD_PROTECTION = {
  kinds: [POD_PROTECTORS],
  shared: [POD_PROTECTORS],
  fields: ['podProtection'] as const,
  settings: ['protection'] as const,
  addCommands: addProtect,
  check: async () => (await import('./app/generator-config.ts')).checkGeneratorConfig,
  filters: async () => (await import('./app/filters.ts')).protectionFilters,
  component: async () => (await import('./app/protection.ts')).createProtection,
}
