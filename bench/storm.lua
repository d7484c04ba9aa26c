-- storm.lua: what bench/storm gives to wrk.  With two arguments (number of cold
-- files, seed) every file is asked for once, in an order that the seed decides;
-- without arguments the address of the command line is asked for.  At the end
-- one line of numbers, because wrk's own table rounds.

function init(args)
	if #args < 2 then
		return
	end
	local count, order, turn = tonumber(args[1]), {}, 0
	math.randomseed(tonumber(args[2]))
	for i = 1, count do
		local j = math.random(i)
		order[i] = order[j]
		order[j] = i
	end
	function request()
		turn = turn % count + 1
		return wrk.format("GET", string.format("/cold/%05d", order[turn]))
	end
end

function done(summary, latency)
	local e = summary.errors
	print(string.format("storm %d %d %d %d %d %d %d", summary.requests,
	    summary.duration, summary.bytes, latency:percentile(50),
	    latency:percentile(99), e.status,
	    e.connect + e.read + e.write + e.timeout))
end
