// What insight adds to the program, which has no other import of it (program/subjects/subjects.ts).

import type { Command } from 'commander'
import type { CommandContext } from '../cli/command/output.ts'
import { addSessions, addTap, addTop } from './cli/program.ts'
import { INSIGHT_METRICS } from './metrics/descriptors.ts'

export const INSIGHT = {
  kinds: [],
  settings: ['top'] as const,
  metrics: INSIGHT_METRICS,
  addCommands(program: Command, context: CommandContext) {
    addTop(program, context)
    addSessions(program, context)
    addTap(program, context)
  },
  observers: async () => (await import('./app/observers.ts')).insightObservers,
  component: async () => (await import('./app/insight.ts')).createInsight,
}
