// What the main thread tells the gateway threads about recordings.

import { Topic } from '../../kit/core/topics/topics.ts'
import type { RecordingSettings } from '../core/recording/recording-settings.ts'

export const RECORDING_SETTINGS = new Topic<RecordingSettings>('session-recording-settings')
