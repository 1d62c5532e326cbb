-- Wireshark and tshark: what millpond's virtual switches say to each other by UDP.
--
-- Copy it into the folder of personal Lua plugins (Help, About Wireshark, Folders), or:
--   tshark -X lua_script:millpond.lua -r capture.pcap
--
-- Four kinds of datagram, told apart by their first bytes: a frame on a path (version 1), a probe of
-- a path (2), a sealed frame (3), and a datagram of the overlay that pauses flows.

local millpond = Proto("millpond", "millpond virtual switch")

local kinds = { [1] = "Frame", [2] = "Probe", [3] = "Sealed frame" }
local words = { "Pause", "Resume", "Refresh", "Ask", "Grant", "Rate" }
local scopes = { "Flow", "Application", "Peer" }

local f = millpond.fields
f.mark = ProtoField.uint8("millpond.mark", "Mark", base.HEX)
f.version = ProtoField.uint8("millpond.version", "Version", base.DEC, kinds, 0xf0)
f.partial = ProtoField.bool("millpond.partial", "Partial transport checksum", 8, nil, 0x01)
f.label = ProtoField.uint16("millpond.label", "Label (path)")
f.flowcell = ProtoField.uint16("millpond.flowcell", "Flowcell")
f.key = ProtoField.uint16("millpond.key", "Number of the key")
f.number = ProtoField.uint64("millpond.number", "Number of the datagram")
f.sealed = ProtoField.bytes("millpond.sealed", "Encrypted frame")
f.tag = ProtoField.bytes("millpond.tag", "Tag")
f.length = ProtoField.uint16("millpond.probe.length", "Length of the datagram")
f.from = ProtoField.bytes("millpond.probe.from", "Drawn by the sender")
f.to = ProtoField.bytes("millpond.probe.to", "Known of the peer")
f.sent = ProtoField.uint64("millpond.probe.sent", "Sent (ns)")
f.heard = ProtoField.uint64("millpond.probe.heard", "Newest probe heard was sent (ns)")
f.waited = ProtoField.uint64("millpond.probe.waited", "It has waited (ns)")
f.padded = ProtoField.uint64("millpond.probe.padded", "Newest padded probe was sent (ns)")
f.padded_length = ProtoField.uint16("millpond.probe.padded_length", "Its length")
f.peer_from = ProtoField.uint32("millpond.overlay.from", "From switch", base.HEX)
f.peer_to = ProtoField.uint32("millpond.overlay.to", "To switch", base.HEX)
f.epoch = ProtoField.uint32("millpond.overlay.epoch", "Epoch")
f.to_epoch = ProtoField.uint32("millpond.overlay.to_epoch", "Epoch known of the other")
f.records = ProtoField.uint8("millpond.overlay.records", "Records")
f.word = ProtoField.uint8("millpond.overlay.word", "Word", base.DEC, words)
f.scope = ProtoField.uint8("millpond.overlay.scope", "Scope", base.DEC, scopes)
f.protocol = ProtoField.uint8("millpond.overlay.protocol", "Protocol")
f.source = ProtoField.ipv6("millpond.overlay.source", "Source")
f.destination = ProtoField.ipv6("millpond.overlay.destination", "Destination")
f.source_port = ProtoField.uint16("millpond.overlay.source_port", "Source port")
f.destination_port = ProtoField.uint16("millpond.overlay.destination_port", "Destination port")
f.seq = ProtoField.uint64("millpond.overlay.seq", "Sequence number")
f.queued = ProtoField.uint32("millpond.overlay.queued", "Queued (bytes)")
f.rate = ProtoField.uint32("millpond.overlay.rate", "Rate")
f.ttl = ProtoField.uint32("millpond.overlay.ttl", "TTL (us)")

local HEAD, PROBE, SEALED, TAG = 8, 96, 16, 16
local ETHERNET = 14
local OVERLAY, RECORD = 32, 60
local ethernet = Dissector.get("eth_withoutfcs")

-- The kind of a datagram, or nil.
local function kind_of(tvb)
    local length = tvb:len()
    if length >= OVERLAY + TAG and tvb(0, 4):string() == "mpbd" and tvb(4, 1):uint() == 1 then
        local records = tvb(5, 1):uint()
        return length == OVERLAY + records * RECORD + TAG and "overlay" or nil
    end
    if length < HEAD or tvb(0, 1):uint() ~= 0x6d then
        return nil
    end
    local version, flags = tvb(1, 1):bitfield(0, 4), tvb(1, 1):bitfield(4, 4)
    if version == 1 and flags <= 1 and tvb(6, 2):uint() == 0 then
        return "frame"
    elseif version == 2 and flags == 0 and length >= PROBE and tvb(6, 2):uint() == length then
        return "probe"
    elseif version == 3 and flags <= 1 and length >= SEALED + TAG then
        return "sealed"
    end
    return nil
end

local function begin(tvb, tree, length)
    local own = tree:add(millpond, tvb(0, length))
    own:add(f.mark, tvb(0, 1))
    own:add(f.version, tvb(1, 1))
    return own
end

local function frame(tvb, pinfo, tree)
    local own = begin(tvb, tree, HEAD)
    own:add(f.partial, tvb(1, 1))
    own:add(f.label, tvb(2, 2))
    own:add(f.flowcell, tvb(4, 2))
    pinfo.cols.info = string.format("path %d, flowcell %d", tvb(2, 2):uint(), tvb(4, 2):uint())
    if tvb:len() >= HEAD + ETHERNET then
        ethernet:call(tvb(HEAD):tvb(), pinfo, tree)
    end
end

local function probe(tvb, pinfo, tree)
    local own = begin(tvb, tree, tvb:len())
    own:add(f.label, tvb(2, 2))
    own:add(f.key, tvb(4, 2))
    own:add(f.length, tvb(6, 2))
    own:add(f.from, tvb(8, 16))
    own:add(f.to, tvb(24, 16))
    own:add(f.sent, tvb(40, 8))
    own:add(f.heard, tvb(48, 8))
    own:add(f.waited, tvb(56, 8))
    own:add(f.padded, tvb(64, 8))
    own:add(f.padded_length, tvb(72, 2))
    own:add(f.tag, tvb(80, TAG))
    pinfo.cols.info = string.format("probe of path %d, %d bytes", tvb(2, 2):uint(), tvb:len())
end

local function sealed(tvb, pinfo, tree)
    local own = begin(tvb, tree, tvb:len())
    own:add(f.partial, tvb(1, 1))
    own:add(f.label, tvb(2, 2))
    own:add(f.flowcell, tvb(4, 2))
    own:add(f.key, tvb(6, 2))
    own:add(f.number, tvb(8, 8))
    if tvb:len() > SEALED + TAG then
        own:add(f.sealed, tvb(SEALED, tvb:len() - SEALED - TAG))
    end
    own:add(f.tag, tvb(tvb:len() - TAG, TAG))
    pinfo.cols.info = string.format("sealed, path %d, flowcell %d, number %s", tvb(2, 2):uint(),
        tvb(4, 2):uint(), tostring(tvb(8, 8):uint64()))
end

local function overlay(tvb, pinfo, tree)
    local own = tree:add(millpond, tvb())
    local count = tvb(5, 1):uint()
    own:add(f.records, tvb(5, 1))
    own:add(f.peer_from, tvb(8, 4))
    own:add(f.peer_to, tvb(12, 4))
    own:add(f.epoch, tvb(16, 4))
    own:add(f.to_epoch, tvb(20, 4))
    own:add(f.number, tvb(24, 8))
    local text = {}
    for i = 0, count - 1 do
        local at = OVERLAY + i * RECORD
        local word = words[tvb(at, 1):uint()] or "unknown"
        local record = own:add(tvb(at, RECORD), word)
        record:add(f.word, tvb(at, 1))
        record:add(f.scope, tvb(at + 1, 1))
        record:add(f.protocol, tvb(at + 2, 1))
        record:add(f.source, tvb(at + 4, 16))
        record:add(f.destination, tvb(at + 20, 16))
        record:add(f.source_port, tvb(at + 36, 2))
        record:add(f.destination_port, tvb(at + 38, 2))
        record:add(f.seq, tvb(at + 40, 8))
        record:add(f.queued, tvb(at + 48, 4))
        record:add(f.rate, tvb(at + 52, 4))
        record:add(f.ttl, tvb(at + 56, 4))
        text[#text + 1] = word
    end
    own:add(f.tag, tvb(tvb:len() - TAG, TAG))
    pinfo.cols.info = count == 0 and "overlay: greeting" or "overlay: " .. table.concat(text, ", ")
end

local dissect = { frame = frame, probe = probe, sealed = sealed, overlay = overlay }

function millpond.dissector(tvb, pinfo, tree)
    local kind = kind_of(tvb)
    if kind == nil then
        return 0
    end
    pinfo.cols.protocol = "millpond"
    dissect[kind](tvb, pinfo, tree)
    return tvb:len()
end

millpond:register_heuristic("udp", function(tvb, pinfo, tree)
    return millpond.dissector(tvb, pinfo, tree) > 0
end)
