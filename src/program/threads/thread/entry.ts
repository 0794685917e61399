// Entry point of a gateway thread.

import { parentLine } from '../../io/threads.ts'
import { loadThreadSubjects } from '../../subjects/load.ts'
import type { FromThread, ThreadData, ToThread } from '../messages.ts'
import { GatewayThread } from './gateway-thread.ts'
import { WarmUp } from './warm-up.ts'

// Messages wait for the listener, which is there in the turn in which the thread is.
const subjects = await loadThreadSubjects()
const line = parentLine<FromThread, ToThread>((message) => thread.receive(message))
const thread = new GatewayThread(line.data as ThreadData, line.post, subjects, (deps) => new WarmUp(deps))
