// HTTP/2 frames as bytes (RFC 9113 section 4.1): only what both ends of a measurement need.
package main

import "encoding/binary"

const (
	frameData         = 0
	frameHeaders      = 1
	frameRSTStream    = 3
	frameSettings     = 4
	framePing         = 6
	frameGoAway       = 7
	frameWindowUpdate = 8
	frameContinuation = 9

	flagEndStream  = 0x1 // DATA, HEADERS
	flagAck        = 0x1 // SETTINGS, PING
	flagEndHeaders = 0x4
	flagPadded     = 0x8
	flagPriority   = 0x20

	settingHeaderTableSize   = 1
	settingEnablePush        = 2
	settingMaxStreams        = 3
	settingInitialWindowSize = 4

	frameHeaderLen    = 9
	maxFrameSize      = 16384
	defaultWindow     = 65535
	defaultTableSize  = 4096
	defaultMaxStreams = 100
	preface           = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
)

type setting struct {
	id    uint16
	value uint32
}

func appendFrameHeader(out []byte, length int, kind, flags byte, stream uint32) []byte {
	return append(out, byte(length>>16), byte(length>>8), byte(length), kind, flags,
		byte(stream>>24), byte(stream>>16), byte(stream>>8), byte(stream))
}

func appendSettings(out []byte, settings ...setting) []byte {
	out = appendFrameHeader(out, 6*len(settings), frameSettings, 0, 0)
	for _, s := range settings {
		out = binary.BigEndian.AppendUint16(out, s.id)
		out = binary.BigEndian.AppendUint32(out, s.value)
	}
	return out
}

func appendWindowUpdate(out []byte, stream uint32, bytes int) []byte {
	out = appendFrameHeader(out, 4, frameWindowUpdate, 0, stream)
	return binary.BigEndian.AppendUint32(out, uint32(bytes))
}

// eachFrame calls handle for every whole frame in data and returns the rest.
func eachFrame(data []byte, handle func(kind, flags byte, stream uint32, payload []byte) error) ([]byte, error) {
	for len(data) >= frameHeaderLen {
		length := int(data[0])<<16 | int(data[1])<<8 | int(data[2])
		if len(data) < frameHeaderLen+length {
			break
		}
		stream := binary.BigEndian.Uint32(data[5:]) & 0x7fffffff
		if err := handle(data[3], data[4], stream, data[frameHeaderLen:frameHeaderLen+length]); err != nil {
			return nil, err
		}
		data = data[frameHeaderLen+length:]
	}
	return data, nil
}

func eachSetting(payload []byte, handle func(id uint16, value uint32)) {
	for ; len(payload) >= 6; payload = payload[6:] {
		handle(binary.BigEndian.Uint16(payload), binary.BigEndian.Uint32(payload[2:]))
	}
}

// headerBlock is the fragment in a HEADERS frame without padding and priority.
func headerBlock(flags byte, payload []byte) []byte {
	if flags&flagPadded != 0 {
		payload = payload[1 : len(payload)-int(payload[0])]
	}
	if flags&flagPriority != 0 {
		payload = payload[5:]
	}
	return payload
}
