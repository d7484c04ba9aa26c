-- wrk.lua: what the laboratory gives to wrk.  With an argument, the name of a file,
-- its lines are asked for one after the other, and again from the first; without,
-- the address of the command line.  At the end one line of JSON, because wrk's own
-- table rounds.  Its percentiles are not used: see docs/benchmarks.md.

function init(args)
	if #args < 1 then
		return
	end
	local list, turn = {}, 0
	for line in io.lines(args[1]) do
		list[#list + 1] = wrk.format("GET", line)
	end
	function request()
		turn = turn % #list + 1
		return list[turn]
	end
end

function done(summary)
	local e = summary.errors
	print(string.format('{"requests": %d, "seconds": %.6f, "bytes": %d, ' ..
	    '"refused": %d, "errors": %d}', summary.requests,
	    summary.duration / 1e6, summary.bytes, e.status,
	    e.connect + e.read + e.write + e.timeout))
end
